package inner

// wantsCertificate is what the agent and the record read of it.
const wantsCertificate = "the server has asked for a certificate of its client, which clove does not have, and has ended the connection"

// wantsCertificate reports, of a connection that the server has ended, whether it did so for want of a certificate. In TLS 1.3 that is seen only
// behind the handshake.
func (c *serverConn) wantsCertificate() bool { return c.asked.Load() && !c.answered.Load() }
