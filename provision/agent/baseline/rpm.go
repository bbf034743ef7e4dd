// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/rpmdb"
	"github.com/ironrail/ironrail/internal/wire"
)

// RPMFormat has rpm print a line for each package: its name, [epoch:]version-release and
// architecture.
const RPMFormat = `%{NAME}\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\t%|ARCH?{%{ARCH}}:{noarch}|\n`

// rpmTime is how long rpm may take: it reads some MiB, behind a lock that an installation holds.
const rpmTime = time.Minute

// RPM lists the packages of the running system by rpm(8), in RPMFormat. Without rpm it is
// fs.ErrNotExist.
func RPM() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), rpmTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "rpm", "--query", "--all", "--queryformat", RPMFormat)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fs.ErrNotExist
	case ctx.Err() != nil:
		return nil, fmt.Errorf("rpm does not list the packages within %s", rpmTime)
	case err != nil:
		return nil, fmt.Errorf("rpm: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return out, nil
}

// ParseRPM reads lines of RPMFormat and returns the packages by name. One of an architecture other than
// that of package rpm itself carries it in its name; one that is there in several versions has them
// all.
func ParseRPM(text []byte) ([]wire.Package, error) {
	native := ""
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 3 || f[0] == "" || f[1] == "" {
			return nil, fmt.Errorf("%q is no line with a package's name, version and architecture", line)
		}
		if f[0] == "rpm" {
			native = f[2]
		}
		rows = append(rows, f)
	}
	if len(rows) == 0 {
		return nil, errors.New("rpm lists nothing")
	}
	var list []wire.Package
	for _, f := range rows {
		name := f[0]
		if name == rpmdb.PublicKey {
			continue
		}
		if native != "" && f[2] != native && f[2] != "noarch" {
			name += ":" + f[2]
		}
		list = append(list, wire.Package{Name: name, Version: f[1]})
	}
	slices.SortFunc(list, func(a, b wire.Package) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return joinVersions(slices.Compact(list)), nil
}

// joinVersions makes one package of those with one name, such as kernels beside each other.
func joinVersions(list []wire.Package) (joined []wire.Package) {
	for _, p := range list {
		if n := len(joined); n > 0 && joined[n-1].Name == p.Name {
			joined[n-1].Version += ", " + p.Version
			continue
		}
		joined = append(joined, p)
	}
	return joined
}
