package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version of this program: its release, or the commit it was built from.
One that was built without version control information (go build -buildvcs=false)
is "unreleased" with the beginning of its own SHA-256, as sha256sum prints it.`,
		Example: "  ironrail version --json",
		Args:    usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.printJSON(map[string]string{"version": version()})
			}
			var p page
			p.linef("ironrail %s", version())
			p.to(a.out)
			return nil
		},
	}
}

// version is the module's version, or the commit that the program was built from. A
// program that was built without either is named by its own digest.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info, ownDigest)
}

func versionOf(info *debug.BuildInfo, digest func() string) string {
	if info != nil {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			return v
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && s.Value != "" {
				return s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return "unreleased+" + digest()
}

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
