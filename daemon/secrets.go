package daemon

import (
	"encoding/json"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/secrets/sealed"
	"clove.run/clove/secrets/sshkey"
)

// valuesTime bounds the wait for a reader of values.
const valuesTime = 10 * time.Second

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
	all, values, err := s.shared.kernel.Secrets(run, asked.Plain)
	if err != nil {
		return result, err
	}
	pipe, err := takeFile(c)
	if err != nil {
		return result, err
	}
	defer pipe.Close()
	result.Secrets = all
	return result, writeValues(pipe, values)
}

// writeValues writes in bounded time: a reader that does not read would hold the values here.
func writeValues(pipe *os.File, values map[string]string) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	defer clear(text)
	if err := pipe.SetWriteDeadline(time.Now().Add(valuesTime)); err != nil {
		return api.Failure(api.CodeRequest, "", "the descriptor is no pipe")
	}
	if _, err := pipe.Write(text); err != nil {
		return api.Failure(api.CodeRequest, "", "the values of secrets cannot be passed on")
	}
	return nil
}

// secretKeys encrypt values, and read those that are private keys of ssh.
type secretKeys struct{ *sealed.Keeper }

// CheckSSH is as kernel/secrets.Keys has it.
func (secretKeys) CheckSSH(value []byte) error {
	_, err := sshkey.Read(value)
	return err
}
