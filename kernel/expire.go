package kernel

import (
	"sync"
	"time"

	"clove.run/clove/kernel/lease"
	"clove.run/clove/store"
)

// expireEvery is how often expired messages become dead letters of mailboxes to which nothing is sent.
const expireEvery = time.Minute

// every calls do at each tick, until end.
func every(tick time.Duration, do func()) (end func()) {
	ticker, stop := time.NewTicker(tick), make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-ticker.C:
				do()
			case <-stop:
				ticker.Stop()
				return
			}
		}
	})
	return func() { close(stop); ended.Wait() }
}

// expireMail makes dead letters of all messages that have expired.
func (k *Kernel) expireMail() (err error) {
	var due []lease.Of
	err = k.engine.Read(func(tx *store.KernelTx) error {
		due, err = lease.Due(tx, k.engine.Now())
		return err
	})
	if err != nil || len(due) == 0 {
		return err
	}
	return k.engine.Update("mail", func(tx *store.KernelTx) error {
		for _, box := range due {
			if err := lease.Expire(tx, box, k.engine.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}
