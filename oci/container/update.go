package container

import (
	"errors"
	"slices"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/intelrdt"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Change is what an update asks for. An absent value stays as it is.
type Change struct {
	Resources     specs.LinuxResources
	L3CacheSchema string // Intel RDT, resctrl's form; "": as it is
	MemBwSchema   string // as L3CacheSchema
}

// Update changes the limits of a container that is not stopped. Before it writes anything,
// it calls allowed with the memory, pids and CPU limits that would hold afterwards; an
// error of allowed is returned, and nothing is changed. If the kernel refuses a value, the
// old ones are restored. The error is ErrNotRunning if the container has ended.
func (c *Container) Update(change Change, allowed func(after *specs.LinuxResources) error) error {
	config := c.lib.Config()
	// Everything is copied: if the kernel refuses a value, libcontainer writes the old ones
	// again, and they must be unchanged.
	resources := *config.Cgroups.Resources
	cgroup := *config.Cgroups
	cgroup.Resources, config.Cgroups = &resources, &cgroup
	mergeMemory(&resources, change.Resources.Memory)
	mergeCPU(&resources, change.Resources.CPU)
	mergeBlockIO(&resources, change.Resources.BlockIO)
	if pids := change.Resources.Pids; pids != nil && pids.Limit != nil {
		resources.PidsLimit = pids.Limit
	}
	// Only the change's own: earlier ones are in the cgroup already.
	resources.Unified = change.Resources.Unified
	if err := allowed(effective(&resources)); err != nil {
		return err
	}
	if err := mergeRdt(&config, change); err != nil {
		return err
	}
	// An engine's plugin, for a GPU for instance, may have added device rules to the
	// cgroup. They are not known here and would be lost.
	resources.SkipDevices = true
	return c.lib.Set(config)
}

// effective returns a cgroup's limits in the types of config.json, as allowed expects them.
func effective(r *cgroups.Resources) *specs.LinuxResources {
	return &specs.LinuxResources{
		Memory:  &specs.LinuxMemory{Limit: &r.Memory, Swap: &r.MemorySwap},
		CPU:     &specs.LinuxCPU{Quota: &r.CpuQuota, Period: &r.CpuPeriod},
		Pids:    &specs.LinuxPids{Limit: r.PidsLimit},
		Unified: r.Unified,
	}
}

// set takes over a value that the change names. libcontainer writes no zero, so a zero in
// the config would leave the old limit in the kernel while the state shows none.
func set[T comparable](value *T, to *T) {
	if zero := *new(T); to != nil && *to != zero {
		*value = *to
	}
}

// mergeMemory sets what is named. On cgroup v1 the kernel refuses a limit of memory and
// swap together that is below the memory limit.
func mergeMemory(r *cgroups.Resources, m *specs.LinuxMemory) {
	if m == nil {
		return
	}
	set(&r.Memory, m.Limit)
	set(&r.MemoryReservation, m.Reservation)
	set(&r.MemorySwap, m.Swap)
	r.MemoryCheckBeforeUpdate = m.CheckBeforeUpdate != nil && *m.CheckBeforeUpdate
	// The old sum of memory and swap may not fit the new memory limit. Zero tells
	// libcontainer not to write it.
	if m.Limit != nil && *m.Limit != 0 && (m.Swap != nil && *m.Swap == 0 || m.Swap == nil && *m.Limit == -1) {
		r.MemorySwap = 0
	}
}

// mergeCPU keeps quota and period together: systemd and cgroup v2 write both, and a quota
// means something else with another period.
func mergeCPU(r *cgroups.Resources, cpu *specs.LinuxCPU) {
	if cpu == nil {
		return
	}
	set(&r.CpuPeriod, cpu.Period)
	set(&r.CpuQuota, cpu.Quota)
	set(&r.CpuRtPeriod, cpu.RealtimePeriod)
	set(&r.CpuRtRuntime, cpu.RealtimeRuntime)
	set(&r.CpusetCpus, &cpu.Cpus)
	set(&r.CpusetMems, &cpu.Mems)
	r.CpuBurst, r.CPUIdle = cpu.Burst, cpu.Idle
	switch {
	case cpu.Shares != nil:
		r.CpuShares, r.CpuWeight = *cpu.Shares, cgroups.ConvertCPUSharesToCgroupV2Value(*cpu.Shares)
	case cpu.Idle != nil:
		r.CpuShares, r.CpuWeight = 0, 0 // an idle cgroup takes no weight
	}
}

// mergeBlockIO merges device by device: a change names only some of them.
func mergeBlockIO(r *cgroups.Resources, b *specs.LinuxBlockIO) {
	if b == nil {
		return
	}
	set(&r.BlkioWeight, b.Weight)
	set(&r.BlkioLeafWeight, b.LeafWeight)
	for _, device := range b.WeightDevice {
		r.BlkioWeightDevice = mergeWeight(r.BlkioWeightDevice, device)
	}
	for _, throttle := range []struct {
		devices *[]*cgroups.ThrottleDevice
		change  []specs.LinuxThrottleDevice
	}{
		{&r.BlkioThrottleReadBpsDevice, b.ThrottleReadBpsDevice},
		{&r.BlkioThrottleWriteBpsDevice, b.ThrottleWriteBpsDevice},
		{&r.BlkioThrottleReadIOPSDevice, b.ThrottleReadIOPSDevice},
		{&r.BlkioThrottleWriteIOPSDevice, b.ThrottleWriteIOPSDevice},
	} {
		for _, device := range throttle.change {
			*throttle.devices = mergeThrottle(*throttle.devices, device)
		}
	}
}

// mergeWeight returns a new list, because the old one is needed if the change fails. If the
// old list has a device twice, the last entry counts, as in the kernel.
func mergeWeight(devices []*cgroups.WeightDevice, change specs.LinuxWeightDevice) []*cgroups.WeightDevice {
	device := cgroups.NewWeightDevice(change.Major, change.Minor, 0, 0)
	devices = slices.DeleteFunc(slices.Clone(devices), func(d *cgroups.WeightDevice) bool {
		same := d.Major == change.Major && d.Minor == change.Minor
		if same {
			device.Weight, device.LeafWeight = d.Weight, d.LeafWeight
		}
		return same
	})
	set(&device.Weight, change.Weight)
	set(&device.LeafWeight, change.LeafWeight)
	return append(devices, device)
}

// mergeThrottle replaces a device's rate. It returns a new list, as mergeWeight does.
func mergeThrottle(devices []*cgroups.ThrottleDevice, change specs.LinuxThrottleDevice) []*cgroups.ThrottleDevice {
	devices = slices.DeleteFunc(slices.Clone(devices), func(d *cgroups.ThrottleDevice) bool {
		return d.Major == change.Major && d.Minor == change.Minor
	})
	return append(devices, cgroups.NewThrottleDevice(change.Major, change.Minor, change.Rate))
}

// mergeRdt changes Intel RDT's schemas. A container that was created without RDT has no
// group there, and libcontainer cannot add one.
func mergeRdt(config *configs.Config, change Change) error {
	switch {
	case change.L3CacheSchema == "" && change.MemBwSchema == "":
		return nil
	case change.L3CacheSchema != "" && !intelrdt.IsCATEnabled():
		return errors.New("cannot set an l3 cache schema: Intel RDT/CAT is not enabled")
	case change.MemBwSchema != "" && !intelrdt.IsMBAEnabled():
		return errors.New("cannot set a memory bandwidth schema: Intel RDT/MBA is not enabled")
	case config.IntelRdt == nil:
		return errors.New("updating a non-existent Intel RDT configuration is not supported")
	}
	rdt := *config.IntelRdt
	set(&rdt.L3CacheSchema, &change.L3CacheSchema)
	set(&rdt.MemBwSchema, &change.MemBwSchema)
	config.IntelRdt = &rdt
	return nil
}
