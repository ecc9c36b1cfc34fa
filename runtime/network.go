package runtime

import "clove.run/clove/netns"

// network is a namespace in the making. It needs nothing of the other steps
// and takes about as long as the store does, so both are done at once.
type network struct {
	made      chan struct{} // closed when the other fields are set
	namespace *netns.Namespace
	err       error
}

func anticipateNetwork() *network {
	n := &network{made: make(chan struct{})}
	go func() {
		defer close(n.made)
		n.namespace, n.err = netns.New()
	}()
	return n
}

func (n *network) await() error {
	<-n.made
	return n.err
}

// abandon lets go of the namespace, whenever it comes.
func (n *network) abandon() error {
	if n.await() != nil {
		return nil // there is none; who awaited it has the reason
	}
	return n.namespace.Close()
}
