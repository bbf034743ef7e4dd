// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kexec

import (
	"io/fs"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Load is of kind Unsupported.
func Load(fs.FS, Entry) error { return errkind.New(errkind.Unsupported, "kexec is Linux's") }
