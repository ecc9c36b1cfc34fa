package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"

	"clove.run/clove/agent"
)

// maxAnswers bounds the answers that are kept of a run's agent, and of users.
const maxAnswers = 4096

// usersAnswers is added to the numbers of answers to users. Their order is apart: an agent that
// calls often must not push out the answer that its owner will ask for again.
const usersAnswers = 1 << 63

// Answers has the bytes that a caller got, which need not be JSON, and their order: a ring of
// the last maxAnswers.
var Answers = AnswerRows{byteRows{names: []string{string(bucketAnswers), string(bucketAnswerOrder)}, ofRun: true}}

// AnswerRows is the type of Answers.
type AnswerRows struct{ byteRows }

// Get returns the answer to the call of a run that had this key, and nil where none is kept.
func (b AnswerRows) Get(t *KernelTx, run agent.ID, key string) ([]byte, error) {
	return t.get(bucketAnswers, []byte(RunKey(run, key)))
}

// Put keeps the answer to a call of a run's agent, for when it asks again, and forgets
// its oldest one beyond maxAnswers. It returns an error if the key already has an answer.
func (b AnswerRows) Put(t *KernelTx, run agent.ID, key string, answer []byte) error {
	return b.keep(t, run, 0, key, answer)
}

// UserID is the id below which the answers to calls of a user about no run are kept.
func UserID(uid uint32) agent.ID { return agent.ID(strconv.FormatUint(uint64(uid), 10)) }

// holdsAnswers reports whether an id is that of a run or of a user.
func holdsAnswers(id agent.ID) bool {
	uid, err := strconv.ParseUint(string(id), 10, 32)
	return id.Valid() || err == nil && id == UserID(uint32(uid))
}

// PutUsers is Put for a call of a user about a run, or about none (UserID).
func (b AnswerRows) PutUsers(t *KernelTx, run agent.ID, key string, answer []byte) error {
	return b.keep(t, run, usersAnswers, key, answer)
}

// keep gives an answer the next number above base.
func (b AnswerRows) keep(t *KernelTx, run agent.ID, base uint64, key string, answer []byte) error {
	if !holdsAnswers(run) || key == "" || len(key) > maxID {
		return wrongKey(string(bucketAnswers), key)
	}
	if there, err := b.Get(t, run, key); err != nil || there != nil {
		return cmp.Or(err, fmt.Errorf("the call %q of run %s has an answer", key, run))
	}
	order := []byte(RunKey(run, ""))
	// No caller makes 2^56 calls, so the first byte distinguishes the two orders.
	newest, err := t.last(bucketAnswerOrder, append(order[:len(order):len(order)], numberKey(base)[0]))
	if err != nil {
		return err
	}
	number := base + 1
	if newest.key != nil {
		number = binary.BigEndian.Uint64(newest.key[len(order):]) + 1
	}
	if err := t.put(bucketAnswers, []byte(RunKey(run, key)), append([]byte{}, answer...)); err != nil {
		return err
	}
	if err := t.put(bucketAnswerOrder, append(order, numberKey(number)...), []byte(key)); err != nil || number-base <= maxAnswers {
		return err
	}
	return b.deleteNumber(t, run, number-maxAnswers)
}

// deleteNumber removes the answer with this number of a run.
func (b AnswerRows) deleteNumber(t *KernelTx, run agent.ID, number uint64) error {
	order := append([]byte(RunKey(run, "")), numberKey(number)...)
	key, err := t.get(bucketAnswerOrder, order)
	if err != nil || key == nil {
		return err
	}
	return cmp.Or(t.delete(bucketAnswers, []byte(RunKey(run, string(key)))), t.delete(bucketAnswerOrder, order))
}
