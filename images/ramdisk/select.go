// SPDX-License-Identifier: Apache-2.0

package ramdisk

import "strings"

// entry is one or more modules.
type entry struct{ path, why string }

// memoryModules are wanted besides, where the system is kept in memory.
var memoryModules = []entry{
	{"drivers/block/loop", "the image is a file"},
	{"fs/squashfs/squashfs", "the image"},
	{"fs/overlayfs/overlay", "what is written over it"},
}

// wanted are the modules that an install may need, as paths below kernel/: a
// folder with all below it, or one module without its suffix. What they depend on
// is added by modules.dep and modules.softdep. USB is left out on purpose: the
// network interface that a BMC offers over USB must never be taken for a NIC.
var wanted = []entry{
	{"drivers/net/ethernet/", "the NIC that boots"},
	{"drivers/net/virtio_net", "virtual nodes"},
	{"drivers/net/vmxnet3/", "virtual nodes"},
	{"net/8021q/8021q", "a boot network with a tag"},
	{"drivers/virtio/virtio_pci", "virtual nodes"},
	{"drivers/virtio/virtio_mmio", "virtual nodes"},
	{"drivers/block/virtio_blk", "virtual nodes"},
	{"drivers/scsi/virtio_scsi", "virtual nodes"},
	{"drivers/char/hw_random/virtio-rng", "keys made on a virtual node"},
	{"drivers/nvme/host/nvme", "disks"},
	{"drivers/pci/controller/vmd", "NVMe disks behind Intel VMD"},
	{"drivers/ata/ahci", "disks"},
	{"drivers/ata/ata_piix", "disks"},
	{"drivers/scsi/sd_mod", "disks"},
	{"drivers/scsi/megaraid/", "disks behind Broadcom and Dell controllers"},
	{"drivers/scsi/mpt3sas/", "disks behind Broadcom host adapters"},
	{"drivers/scsi/mpi3mr/", "disks behind Broadcom host adapters"},
	{"drivers/scsi/smartpqi/", "disks behind Microchip and HPE controllers"},
	{"drivers/scsi/hpsa", "disks behind HPE controllers"},
	{"drivers/scsi/aacraid/", "disks behind Adaptec controllers"},
	{"drivers/md/dm-mod", "volumes to be seen before they are erased"},
	{"drivers/md/md-mod", "arrays to be seen before they are erased"},
	{"drivers/md/raid0", "root on an array"},
	{"drivers/md/raid1", "root on an array"},
	{"drivers/md/raid10", "root on an array"},
	{"fs/ext4/ext4", "root"},
	{"fs/xfs/xfs", "root"},
	{"fs/fat/vfat", "EFI system partition"},
	{"fs/nls/nls_cp437", "vfat"},
	{"fs/nls/nls_ascii", "vfat, Debian's default"},
	{"fs/nls/nls_iso8859-1", "vfat"},
	{"fs/nls/nls_utf8", "vfat"},
	{"fs/efivarfs/efivarfs", "boot entries"},
	{"crypto/crc32c_generic", "ext4 and xfs ask for it by alias"},
	{"arch/x86/crypto/crc32c-intel", "the same, fast"},
	{"crypto/crct10dif_common", "disks with protection information"},
	{"crypto/crct10dif_generic", "the same"},
	{"drivers/infiniband/core/", "port GUIDs and RDMA devices are reported"},
	{"drivers/infiniband/hw/mlx4/", "the same"},
	{"drivers/infiniband/hw/mlx5/", "the same"},
	{"drivers/infiniband/hw/bnxt_re/", "the same"},
	{"drivers/infiniband/hw/irdma/", "the same"},
	{"drivers/infiniband/ulp/ipoib/", "boot over InfiniBand"},
}

// isIn reports whether a module file, as modules.dep names it, is in a list.
func isIn(list []entry, file string) bool {
	file = strings.TrimPrefix(file, "kernel/")
	for _, w := range list {
		if strings.HasSuffix(w.path, "/") && strings.HasPrefix(file, w.path) || strings.HasPrefix(file, w.path+".ko") {
			return true
		}
	}
	return false
}

// absentModules returns those entries of a list that a kernel has neither as a module
// nor built in: it was configured without, or the folder has a new name.
func absentModules(list []entry, dep, builtin []byte) []string {
	all := "\n" + string(dep) + "\n" + string(builtin)
	var none []string
	for _, w := range list {
		if !strings.Contains(all, "\nkernel/"+w.path) {
			none = append(none, w.path)
		}
	}
	return none
}

// Selection returns the list of modules that installs may need as one text, for
// digests of what a ramdisk is made of.
func Selection() string {
	var b strings.Builder
	for _, w := range wanted {
		b.WriteString(w.path + "\n")
	}
	return b.String()
}
