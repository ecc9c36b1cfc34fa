package container

import (
	"path/filepath"

	"github.com/opencontainers/runc/libcontainer/configs"
)

// Directory is the container's own on the host; it goes when it is deleted.
func (c *Container) Directory() string { return filepath.Join(c.engine.Root, c.lib.ID()) }

// NetworkPath names the network namespace that the engine made before the
// container; "" for one that was made for it, or the host's.
func (c *Container) NetworkPath() string {
	config := c.lib.Config()
	return config.Namespaces.PathOf(configs.NEWNET)
}
