// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/internal/maturity"
)

// release is the version of a release, such as v1.2.0, or v1.2.0-14-g0123456789ab for
// 14 commits after it. The linker sets it (-X main.release, see the Makefile) from
// git describe; it is empty in every other build.
var release string

func (a *app) versionCommand() *cobra.Command {
	var mature bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version of this program, the commit it was built from, whether files
were modified since that commit, and the version of Go that compiled it.

The version is that of the release (make build at a tag), else that of the
module, else the beginning of the commit. A program that was built without
version control information (go build -buildvcs=false) is "unreleased" with the
beginning of its own SHA-256, as sha256sum prints it.

--maturity prints what each part of this program was proven on: hardware, emulated
machines, programs of others, or its own simulator alone; and what it never saw.`,
		Example: "  ironrail version --json\n  ironrail version --maturity",
		Args:    asUsage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if mature {
				b.Maturity = maturity.Parts()
			}
			if a.json {
				return a.printJSON(b)
			}
			b.page().to(a.out)
			return nil
		},
	}
	c.Flags().BoolVar(&mature, "maturity", false, "what each part of this program was proven on")
	return c
}

// build is what is known of how this program was built.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // the commit; "": not known
	Modified *bool  `json:"modified,omitempty"` // files differed from the commit; nil: not known
	Go       string `json:"go,omitempty"`       // the version of Go

	Maturity []maturity.Part `json:"maturity,omitempty"` // where it is asked for
}

// modified reports whether files are known to have differed from the commit.
func (b build) modified() bool { return b.Modified != nil && *b.Modified }

// page is the build as text, a line for each thing known.
func (b build) page() *page {
	var p page
	p.linef("ironrail %s", b.Version)
	switch {
	case b.Revision == "":
	case b.modified():
		p.linef("revision %s (modified)", b.Revision)
	default:
		p.linef("revision %s", b.Revision)
	}
	if b.Go != "" {
		p.linef("built with %s", b.Go)
	}
	for _, m := range b.Maturity {
		p.linef("")
		p.linef("%s", m.Name)
		p.linef("  %-11s %s", m.Level, m.On)
		p.linef("  %-11s %s", "never seen", m.Open)
	}
	return &p
}

// thisVersion returns the version of this program alone, as reports and rehearsals name it.
func thisVersion() string { return thisBuild().Version }

// thisBuild reads what the linker and the go command have written into this program.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info, release, ownDigest)
}

// buildOf takes the version from the first of these that is known: release, the
// module's version, the commit, digest. info may be nil.
func buildOf(info *debug.BuildInfo, release string, digest func() string) build {
	var b build
	if info != nil {
		b.Go = info.GoVersion
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				if modified, err := strconv.ParseBool(s.Value); err == nil {
					b.Modified = &modified
				}
			}
		}
	}
	switch {
	case release != "":
		b.Version = release
	case info != nil && info.Main.Version != "" && info.Main.Version != "(devel)":
		b.Version = info.Main.Version
	case b.Revision != "":
		b.Version = b.Revision[:min(12, len(b.Revision))]
	default:
		b.Version = "unreleased+" + digest()
		return b
	}
	if b.modified() && !strings.HasSuffix(b.Version, dirty) {
		b.Version += dirty
	}
	return b
}

// dirty ends the version of a program whose files differed from the commit, as the
// go command writes it.
const dirty = "+dirty"

// ownDigest is the beginning of the SHA-256 of this program, as sha256sum prints it.
func ownDigest() string {
	const unknown = "unknown"
	path, err := os.Executable()
	if err != nil {
		return unknown
	}
	f, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return unknown
	}
	return fmt.Sprintf("sha256.%x", h.Sum(nil)[:6])
}
