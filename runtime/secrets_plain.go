package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	swaplink "clove.run/clove/egress/swap/link"
	"clove.run/clove/rootfs"
	"clove.run/clove/secrets"
)

// plainBytes is the size of the file system of secrets that the agent reads: 64 of at most 8 KiB, in pages.
const plainBytes = 1 << 20

// plainMount is the file system in memory of secrets that an agent reads; none: it reads none.
func plainMount(spec agent.Spec) []rootfs.Tmpfs {
	if len(spec.Kernel.ReadableSecrets()) == 0 {
		return nil
	}
	return []rootfs.Tmpfs{{Target: secrets.PlainDir, SizeBytes: plainBytes, NoSwap: true}}
}

// readPlain has the secrets that the agent reads put into files. Each is a use, at each start.
func (s *secretsUsed) readPlain(spec agent.Spec) error {
	names := spec.Kernel.ReadableSecrets()
	if len(names) == 0 {
		return nil
	}
	ctx := context.Background()
	_, read, err := s.values(ctx, true)
	if err != nil {
		return err
	}
	defer read.Close()
	text, err := io.ReadAll(io.LimitReader(read, swaplink.ValuesBytes))
	values := swaplink.Values{}
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	clear(text)
	if err != nil {
		return errors.New("the values cannot be read") // the error would have a part of them
	}
	for _, name := range names {
		file := path.Join(secrets.PlainDir, name)
		switch _, err := s.keeper.UseSecret(ctx, api.SecretUseParams{Run: s.run, Secret: name, Method: secrets.MethodFile, Path: file}); {
		case err != nil && api.ErrorOf(err).Code == api.CodeConflict: // a start does not wait for people
			return unasked(name)
		case err != nil:
			return err
		}
		s.plain[file] = values[name] + "\n"
	}
	return nil
}

// unasked refuses a secret that the agent is to read where people are asked about uses: a start does not wait for them.
func unasked(name string) error {
	return &agent.Error{Kind: agent.KindPrivilege, Step: "secrets", Message: "the agent would read " + name + ", and people are asked about secrets", Hint: "add --grant secret:" + name}
}
