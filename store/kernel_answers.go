package store

import (
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

// answers has the bytes that a caller got, which need not be JSON, and their order: a ring of
// the last maxAnswers.
var answers = byteRows{names: []string{string(bucketAnswers), string(bucketAnswerOrder)}, ofRun: true}

// Answer returns the answer to the call of a run that had this key, and nil where none
// is kept.
func (t *KernelTx) Answer(run agent.ID, key string) ([]byte, error) {
	return t.get(bucketAnswers, answerKey(run, key))
}

func answerKey(run agent.ID, key string) []byte { return []byte(runPrefix(run) + key) }

// PutAnswer keeps the answer to a call of a run's agent, for when it asks again, and forgets
// its oldest one beyond maxAnswers. It returns an error if the key already has an answer.
func (t *KernelTx) PutAnswer(run agent.ID, key string, answer []byte) error {
	return t.keepAnswer(run, 0, key, answer)
}

// UserID is the id below which the answers to calls of a user about no run are kept.
func UserID(uid uint32) agent.ID { return agent.ID(strconv.FormatUint(uint64(uid), 10)) }

// holdsAnswers reports whether an id is that of a run or of a user.
func holdsAnswers(id agent.ID) bool {
	uid, err := strconv.ParseUint(string(id), 10, 32)
	return id.Valid() || err == nil && id == UserID(uint32(uid))
}

// PutUsersAnswer is PutAnswer for a call of a user about a run, or about none (UserID).
func (t *KernelTx) PutUsersAnswer(run agent.ID, key string, answer []byte) error {
	return t.keepAnswer(run, usersAnswers, key, answer)
}

// keepAnswer gives an answer the next number above base.
func (t *KernelTx) keepAnswer(run agent.ID, base uint64, key string, answer []byte) error {
	if !holdsAnswers(run) || key == "" || len(key) > maxID {
		return wrongKey(string(bucketAnswers), key)
	}
	if there, err := t.Answer(run, key); err != nil || there != nil {
		return firstError(err, fmt.Errorf("the call %q of run %s has an answer", key, run))
	}
	order := []byte(run + "/")
	// No caller makes 2^56 calls, so the first byte tells the two orders apart.
	newest, err := t.last(bucketAnswerOrder, append(order[:len(order):len(order)], numberKey(base)[0]))
	if err != nil {
		return err
	}
	number := base + 1
	if newest.key != nil {
		number = binary.BigEndian.Uint64(newest.key[len(order):]) + 1
	}
	if err := t.put(bucketAnswers, answerKey(run, key), append([]byte{}, answer...)); err != nil {
		return err
	}
	if err := t.put(bucketAnswerOrder, append(order, numberKey(number)...), []byte(key)); err != nil || number-base <= maxAnswers {
		return err
	}
	return t.forgetAnswer(run, number-maxAnswers)
}

// forgetAnswer removes the answer with this number of a run.
func (t *KernelTx) forgetAnswer(run agent.ID, number uint64) error {
	order := append([]byte(run+"/"), numberKey(number)...)
	key, err := t.get(bucketAnswerOrder, order)
	if err != nil || key == nil {
		return err
	}
	return firstError(t.delete(bucketAnswers, answerKey(run, string(key))), t.delete(bucketAnswerOrder, order))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
