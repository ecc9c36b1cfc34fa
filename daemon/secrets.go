package daemon

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/kernel"
	"clove.run/clove/secrets/sealed"
	"clove.run/clove/secrets/sshkey"
)

// openSecrets returns the secrets of a run to its supervisor, and writes their values into the pipe that the supervisor passes: its
// reading end is another process's, unless the agent is to read them.
func (s *server) openSecrets(c *rpc.Conn, peer caller, request rpc.Message) {
	result, err := s.secretsOf(c, peer, request)
	if err != nil {
		_ = c.Respond(request.ID, nil, api.ErrorOf(err))
		return
	}
	_ = c.Respond(request.ID, result, nil) // a supervisor that has gone asks again
}

func (s *server) secretsOf(c *rpc.Conn, peer caller, request rpc.Message) (result api.SecretOpenResult, err error) {
	var asked api.SecretOpenParams
	run, err := s.supervised(peer, methods.SecretOpen.Method(), request, func(p any) agent.ID { asked = p.(api.SecretOpenParams); return asked.Run })
	if err != nil {
		return result, err
	}
	all, values, err := s.shared.kernel.Secrets.Of(run, asked.Plain)
	if err != nil {
		return result, err
	}
	pipe, err := takeFile(c)
	if err != nil {
		return result, err
	}
	defer pipe.Close()
	result.Secrets = all
	return result, kernel.WriteValues(pipe, values)
}

// secretKeys encrypt values, and read those that are private keys of ssh.
type secretKeys struct{ *sealed.Keeper }

// CheckSSH is as kernel/secrets.Keys has it.
func (secretKeys) CheckSSH(value []byte) error {
	_, err := sshkey.Read(value)
	return err
}
