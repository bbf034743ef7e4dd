// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/internal/durable"
)

// simulatedVersion is what packages call themselves whose version nobody knows.
const simulatedVersion = "1.0~rehearsal1"

// Known is a package that a repository would hold, as a lock file or an index has it.
type Known struct {
	Name, Version, Arch string
	Needs               []string // names of packages that come with it
	Signer              string   // Made.Signer of a package that is made
}

// Simulate makes a repository of the wanted packages without downloading them: index,
// signature and layout are those of Build, the packages hold nothing. Those that a pin
// names have its version. A rehearsal serves it, so that nodes find what they ask for.
func Simulate(ctx context.Context, o Options) (Repo, error) { return SimulateKnown(ctx, o, nil) }

// SimulateKnown is Simulate with the packages that are known to come. What is wanted and
// not among them is added.
func SimulateKnown(ctx context.Context, o Options, known []Known) (Repo, error) {
	all := slices.Clone(known)
	for _, p := range slices.Concat(o.Packages, o.Made.Packages) {
		if !slices.ContainsFunc(known, func(k Known) bool { return k.Name == p }) {
			all = append(all, Known{Name: p, Version: o.simulatedVersion(p), Arch: o.Image.arch()})
		}
	}
	for i, k := range all {
		if slices.Contains(o.Made.Packages, k.Name) {
			all[i].Signer = o.Made.Signer
		}
	}
	if o.Image.isDnf() {
		return ensureRepo(ctx, o, func(_ context.Context, _, out string) (string, error) { return o.simulateDnf(out, all) })
	}
	return ensureRepo(ctx, o, o.fill(func(_ context.Context, _, pool string) (map[string]stanza, error) {
		stanzas := map[string]stanza{}
		for _, k := range all {
			s, err := parseStanza([]byte(k.control()))
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(pool, s.fileName()), []byte("simulated "+k.Name+"\n"), 0o644); err != nil {
				return nil, err
			}
			stanzas[s.fileName()] = s
		}
		return stanzas, nil
	}))
}

// simulateDnf is SimulateKnown of RPM packages.
func (o Options) simulateDnf(out string, all []Known) (digest string, err error) {
	var list []repodata.Package
	for _, k := range all {
		p := repodata.Package{Name: k.Name, Arch: rpmArch(k.Arch), Epoch: "0", Needs: k.Needs}
		p.Version, p.Release, _ = strings.Cut(k.Version, "-")
		if epoch, rest, ok := strings.Cut(p.Version, ":"); ok {
			p.Epoch, p.Version = epoch, rest
		}
		p.Release = cmp.Or(p.Release, "1")
		p.File = pool + "/" + p.Name + "-" + p.Version + "-" + p.Release + "." + p.Arch + ".rpm"
		at := filepath.Join(out, filepath.FromSlash(p.File))
		if err := os.WriteFile(at, []byte("simulated "+k.Name+"\n"), 0o644); err != nil {
			return "", err
		}
		if p.Size, p.Sum, err = folder.Sum(at); err != nil {
			return "", err
		}
		list = append(list, p)
	}
	files, err := repodata.Write(list)
	if err != nil {
		return "", err
	}
	for name, b := range files {
		if err := os.MkdirAll(filepath.Join(out, path.Dir(name)), 0o755); err != nil {
			return "", err
		}
		if err := durable.Write(filepath.Join(out, filepath.FromSlash(name)), b, 0o644); err != nil {
			return "", err
		}
	}
	return o.signDnf(out)
}

// rpmArch is an architecture as rpm has it.
func rpmArch(arch string) string {
	switch arch {
	case "", defaultArch:
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return arch
}

// control is the control file of a package (deb-control(5)).
func (k Known) control() string {
	text := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody\n", k.Name, k.Version, cmp.Or(k.Arch, "amd64"))
	if len(k.Needs) > 0 {
		text += "Depends: " + strings.Join(k.Needs, ", ") + "\n"
	}
	if k.Signer != "" {
		text += "Ironrail-Signer: " + k.Signer + "\n"
	}
	return text + "Description: simulated package of a rehearsal\n"
}

// simulatedVersion is the version of one package: that of the pin that names it.
func (o Options) simulatedVersion(name string) string {
	for _, p := range o.Pins {
		for _, glob := range p.Packages {
			if ok, err := path.Match(glob, name); err == nil && ok {
				if !strings.Contains(p.Version, "*") {
					return p.Version
				}
				if v, ok := strings.CutPrefix(p.Version, "*"); ok && o.Image.isDnf() && !strings.Contains(v, "-") {
					return "1-1" + v // the pattern ends in the release
				} else if ok {
					return "1" + strings.TrimRight(v, "*-.")
				}
				return strings.TrimRight(p.Version, "*-.") + "-1"
			}
		}
	}
	return simulatedVersion
}

// Takes reports whether the pins take a version of a package.
func (o Options) Takes(name, version string) bool {
	for _, p := range o.Pins {
		for _, glob := range p.Packages {
			if ok, err := path.Match(glob, name); err == nil && ok {
				if _, rest, ok := strings.Cut(version, ":"); ok && o.Image.isDnf() {
					version = rest
				}
				fits, err := path.Match(p.Version, version)
				return err == nil && fits
			}
		}
	}
	return true
}
