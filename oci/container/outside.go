package container

import (
	"path/filepath"

	"github.com/opencontainers/runc/libcontainer/configs"
)

// Directory is the container's own directory on the host. It is removed with the container.
func (c *Container) Directory() string { return filepath.Join(c.engine.Root, c.lib.ID()) }

// NetworkPath names the network namespace that the engine made before the container. It is
// empty if libcontainer made the namespace, or if the container uses the host's.
func (c *Container) NetworkPath() string {
	config := c.lib.Config()
	return config.Namespaces.PathOf(configs.NEWNET)
}
