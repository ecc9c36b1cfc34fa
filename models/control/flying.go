package control

// maxFlying bounds the calls of one clove-models that are decided, and those that are in
// flight: one that was taken over asks without end, and each takes memory of root's.
const maxFlying = 4096

// take notes a call under its number. It reports whether the number was free; full, that
// there is no place.
func (f *front) take(k *call) (free, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[k.begin.Number] != nil {
		return false, false
	}
	if max(len(f.calls), f.deciding) >= f.control.places {
		return true, true
	}
	f.calls[k.begin.Number] = k
	f.deciding++
	return true, false
}

// decides is called before a goroutine that answers a call which has had an answer.
func (f *front) decides() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deciding++
}

// decided is called when the answer to a call was sent.
func (f *front) decided() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deciding--
}

// release frees a call's number, once: another call may have it then.
func (f *front) release(k *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[k.begin.Number] == k {
		delete(f.calls, k.begin.Number)
	}
}

// cancel ends a call whose client has gone, whether it waits or runs.
func (f *front) cancel(number uint64) {
	f.mu.Lock()
	call := f.calls[number]
	f.mu.Unlock()
	if call != nil {
		call.gone()
	}
}
