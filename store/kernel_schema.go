package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"
)

// kernel.db, schema 3. Names in <> are keys that vary; → is a value; 0 is a zero byte.
//
//	meta
//	├── kernel                   → "3", decimal
//	└── bucket/<name>            → "made"; a bucket that no migration made
//	accounts
//	└── <budget.Key>             → budget.Account as JSON
//	reservations
//	└── <run>/<id>               → budget.Reservation as JSON, while it is open
//	days
//	└── <day>/<user>/<dimension> → what the user's runs spent on that day (UTC), decimal
//	answers
//	└── <run>/<key>              → the answer to the call that had this key
//	answer-order
//	└── <run>/<number: 8 bytes, big endian> → key; the last maxAnswers of each run's agent, and with usersAnswers added of users
//	grants
//	└── <id>                     → grant.Grant as JSON
//	holders
//	└── <holder> 0 <id>          → nothing; each grant, below its holder
//	derived
//	└── <parent> 0 <id>          → nothing; each grant that has a parent, below it
//	audit                        (its bbolt sequence: the last number given)
//	└── <number: 8 bytes, big endian> → an entry of the audit log that is in no segment yet
//
// holders and derived are indexes: each contains nothing that a grant does not, and each
// is written in the transaction that writes the grant. An account's Reserved is the sum
// of what the reservations hold in it. Check compares all of it.
//
// These are the tables that each clove declares: a migration makes their buckets. Those that
// another package declares are made when it opens the file, and noted in meta, so that a clove
// without them can tell them from damage.
//
// A key begins with what its rows are read by, so that a call reads those of its own run
// or user and no others, however many there are.
var (
	bucketAccounts     = []byte("accounts")
	bucketReservations = []byte("reservations")
	bucketDays         = []byte("days")
	bucketAnswers      = []byte("answers")
	bucketAnswerOrder  = []byte("answer-order")
	bucketGrants       = []byte("grants")
	bucketHolders      = []byte("holders")
	bucketDerived      = []byte("derived")
	bucketAudit        = []byte("audit")
)

// kernelTables are the tables of each kernel.db, in the order of the drawing.
var kernelTables = []Declared{Accounts, Reservations, DailySums, Answers, Grants, AuditQueue}

var kernelFormat = format{version: []byte("kernel"), steps: kernelMigrations,
	buckets: append([][]byte{bucketMeta}, bucketsOf(kernelTables)...),
	held:    "try again; cloved keeps it for as long as it lives, and process %s has it now"}

// kernelMigrations is every step there ever was, as migrations is.
var kernelMigrations = []migration{
	// The first step makes no bucket: setSchema makes meta.
	{to: 1, what: "make the file", apply: func(*bbolt.Tx) error { return nil }},
	{to: 2, what: "make the buckets of budgets, grants, answers and audit entries", apply: makeBuckets(bucketAccounts, bucketReservations,
		bucketAnswers, bucketAnswerOrder, bucketGrants, bucketHolders, bucketDerived, bucketAudit)},
	{to: 3, what: "make the bucket of daily sums", apply: makeBuckets(bucketDays)},
}

func (t *KernelTx) store(bucket []byte, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode %q of %s: %w", key, bucket, err)
	}
	return t.put(bucket, []byte(key), text)
}

// wrongKey is the error for a key that a caller made up.
func wrongKey(bucket, key string) error {
	return fmt.Errorf("%.128q cannot be a key of %s", key, bucket)
}

// maxID bounds the bytes of an id that is part of a key.
const maxID = 64

func numbered(key []byte) (number uint64, ok bool) {
	if len(key) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(key), true
}
