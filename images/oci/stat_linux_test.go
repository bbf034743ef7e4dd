// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

func getxattr(path, name string, to []byte) (int, error) { return unix.Getxattr(path, name, to) }

func uidOf(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
