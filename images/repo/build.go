// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// gather puts packages into a folder, with dir to work in, and returns their
// stanzas by file name.
type gather func(ctx context.Context, dir, pool string) (map[string]stanza, error)

// filler makes a whole repository in the folder out, with dir to work in, and returns the
// digest of its index.
type filler func(ctx context.Context, dir, out string) (digest string, err error)

// fill makes a repository of apt of what is gathered.
func (o Options) fill(get gather) filler {
	return func(ctx context.Context, dir, out string) (string, error) {
		stanzas, err := get(ctx, dir, filepath.Join(out, pool))
		if err != nil {
			return "", err
		}
		return writeIndex(o, out, stanzas)
	}
}

// buildRepo makes and publishes a repository. The caller holds the lock of base.
func buildRepo(ctx context.Context, base string, make filler) error {
	work, err := os.MkdirTemp(base, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) // what cannot be removed is swept by the next build
	out := filepath.Join(work, "out")
	if err := os.MkdirAll(filepath.Join(out, pool), 0o755); err != nil {
		return err
	}
	digest, err := make(ctx, filepath.Join(work, "resolve"), out)
	if err != nil {
		return err
	}
	return publishRepo(base, out, strings.Replace(digest, ":", "-", 1))
}

// fetch downloads packages and what they need, as the image's sources have them, and
// makes those that are made here.
func (o Options) fetch(ctx context.Context, dir, pool string) (map[string]stanza, error) {
	debs, err := downloadPackages(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	made, err := o.make(ctx, filepath.Join(filepath.Dir(dir), "made"), debs)
	if err != nil {
		return nil, err
	}
	return fillPool(ctx, pool, append(debs, made...))
}

// aptConf makes apt work in a root of its own: no setting, source, key or list of
// the controller is read, and nothing of the controller is written (apt.conf(5):
// APT_CONFIG is read first, so Dir::Etc::parts of the system is never looked at).
const aptConf = `Dir "%[1]s";
Dir::Etc::main "none.conf";
Dir::Etc::parts "none.d";
Dir::Etc::sourceparts "none.d";
Dir::Etc::preferences "preferences";
Dir::Etc::preferencesparts "none.d";
Dir::Etc::trustedparts "none.d";
Dir::Etc::trusted "%[2]s";
Dir::State::status "%[3]s";
APT::Architecture "%[4]s";
APT::Architectures { "%[4]s"; };
APT::Sandbox::User "root";
APT::Install-Recommends "false";
APT::Get::AllowUnauthenticated "false";
APT::Cache-Start "100663296";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::http::Timeout "30";
Binary::apt-get::APT::Keep-Downloaded-Packages "true";
`

// downloadPackages resolves the packages against what the image has and fetches all that
// it lacks. It returns the paths of the .deb files. apt checks each of them
// against the signed lists of the sources.
func downloadPackages(ctx context.Context, o Options, dir string) ([]string, error) {
	added, found, err := o.aptAdded(ctx, filepath.Join(filepath.Dir(dir), "added"))
	if err != nil {
		return nil, err
	}
	if found {
		o.Sources = append(slices.Clone(o.Sources), added)
	}
	run, err := readLists(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	o.logf("downloading %s and what they need", strings.Join(o.Packages, ", "))
	argv := append([]string{"apt-get", "-q", "-y", "--download-only", "install", "--"}, o.Packages...)
	if err := run.Run(ctx, nil, argv...); err != nil {
		return nil, err
	}
	debs, err := filepath.Glob(filepath.Join(run.Dir, "var/cache/apt/archives/*.deb"))
	if err == nil && len(debs) == 0 && len(o.Made.Packages) == 0 {
		err = errkind.New(errkind.Refused, "the image has all packages already").Do("Take the driver out of the site: there is nothing to install.")
	}
	return debs, err
}

// readLists makes a root for apt in a folder and reads the lists of the sources.
func readLists(ctx context.Context, o Options, dir string) (tool.Runner, error) {
	run, err := aptRoot(o, dir)
	if err != nil {
		return run, err
	}
	o.logf("reading the package lists")
	return run, run.Run(ctx, nil, "apt-get", "-q", "update", "--error-on=any")
}

// aptRoot makes a root for apt in a folder.
func aptRoot(o Options, dir string) (tool.Runner, error) {
	for _, d := range []string{"etc/apt/none.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return tool.Runner{}, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return tool.Runner{}, err
	}
	return tool.Runner{Dir: dir, Env: []string{"APT_CONFIG=" + filepath.Join(dir, "apt.conf"), "DEBIAN_FRONTEND=noninteractive"}}, aptFiles(o, dir)
}

// aptFiles writes apt's configuration and the sources.
func aptFiles(o Options, dir string) error {
	status, err := filepath.Abs(o.Image.Status)
	if err != nil {
		return err
	}
	// The name of the keyring must not hold what apt.conf would not take; the copy's does not.
	keyring := filepath.Join(dir, "etc/apt/image.gpg")
	if err := copyFile(keyring, o.Image.Keyring); err != nil {
		return err
	}
	if strings.ContainsAny(dir+status, "\"\\\n;") {
		return errkind.New(errkind.Unsupported, "the state folder's path %q has signs that apt.conf cannot hold", dir)
	}
	conf := fmt.Sprintf(aptConf, dir, keyring, status, o.Image.arch())
	list, err := o.Image.ListSources(o.Sources, o.Components, filepath.Join(dir, "etc/apt"))
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "apt.conf"), []byte(conf), 0o644),
		os.WriteFile(filepath.Join(dir, "etc/apt/preferences"), Preferences(o.Pins), 0o644),
		os.WriteFile(filepath.Join(dir, "etc/apt/sources.list"), list, 0o644),
	)
}

// withoutSignedBy takes signed-by options out of one-line sources: the image's
// keyring is trusted for all of them, and the paths are the image's.
func withoutSignedBy(sources []byte) []byte {
	return dropOptions(sources, func(s string) bool { return strings.HasPrefix(strings.ToLower(s), "signed-by=") })
}

// dropOptions takes those options out of one-line sources that drop names.
func dropOptions(sources []byte, drop func(option string) bool) []byte {
	var out []string
	for line := range strings.Lines(string(sources)) {
		open, shut := strings.Index(line, "["), strings.Index(line, "]")
		if !strings.HasPrefix(strings.TrimSpace(line), "#") && open >= 0 && shut > open {
			options := slices.DeleteFunc(strings.Fields(line[open+1:shut]), drop)
			middle := ""
			if len(options) > 0 {
				middle = "[" + strings.Join(options, " ") + "]"
			}
			line = line[:open] + middle + line[shut+1:]
		}
		out = append(out, line)
	}
	return []byte(strings.Join(out, ""))
}

// fillPool copies the packages into the pool and returns their stanzas by file name.
func fillPool(ctx context.Context, dir string, debs []string) (map[string]stanza, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	all := map[string]stanza{}
	for _, deb := range debs {
		control, err := tool.Runner{}.Output(ctx, "dpkg-deb", "--field", deb)
		if err != nil {
			return nil, err
		}
		s, err := parseStanza(control)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(deb), err)
		}
		name := s.fileName()
		if err := copyFile(filepath.Join(dir, name), deb); err != nil {
			return nil, err
		}
		all[name] = s
	}
	return all, nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// writeRecord writes repo.json.
func writeRecord(o Options, out string, versions map[string]string, size int64) error {
	rec := record{Inputs: o.inputs(), Image: o.Image.Digest, Wanted: o.Packages, Packages: versions, Size: size}
	b, err := json.MarshalIndent(rec, "", "\t")
	if err != nil {
		return err
	}
	return durable.Write(filepath.Join(out, recordFile), b, 0o644)
}

// publishRepo renames the finished repository into place and points to it.
func publishRepo(base, out, name string) error {
	to := filepath.Join(base, name)
	if err := folder.Replace(out, to); err != nil { // what has the name holds the same packages
		return err
	}
	return durable.Write(filepath.Join(base, currentFile), []byte(name+"\n"), 0o644)
}
