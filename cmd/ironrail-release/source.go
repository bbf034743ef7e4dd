// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// source is the commit that a release is made from.
type source struct {
	commit    string    // 40 hex digits
	at        time.Time // when it was committed: the time of all files
	described string    // v1.2.0, v1.2.0-14-g0123456789ab; empty before the first tag
	version   string    // as packages and names of files have it
}

// readSource asks git for the commit that is checked out. Files that were edited since are
// refused: nobody could build what they make again.
func readSource(ctx context.Context) (s source, err error) {
	git := func(argv ...string) (out string) {
		if err == nil {
			out, err = command(ctx, nil, append([]string{"git"}, argv...)...)
		}
		return out
	}
	s.commit = git("rev-parse", "HEAD")
	at := git("show", "--no-patch", "--format=%ct", "HEAD")
	edited := git("status", "--porcelain")
	if err != nil {
		return s, err
	}
	if edited != "" {
		return s, fmt.Errorf("files differ from commit %.12s, or are not in it:\n%s\nCommit or remove them", s.commit, edited)
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return s, err
	}
	s.at = time.Unix(seconds, 0).UTC()
	// Without a tag git describe fails: that is no error.
	s.described, _ = command(ctx, nil, "git", "describe", "--tags", "--match", "v[0-9]*", "--abbrev=12")
	s.version, err = packageVersion(s.described, s.commit, s.at)
	return s, err
}

// after is what git describe adds for the commits since a tag.
var after = lazyregexp.New(`-([0-9]+)-g([0-9a-f]+)$`)

// packageVersion is the version that dpkg and rpm order as time does: 1.2.0; 1.2.0+14.g0123456789ab
// for 14 commits after it; 1.3.0~rc.1 before 1.3.0; before the first tag 0.0.0+20260102030405.0123456789ab.
func packageVersion(described, commit string, at time.Time) (string, error) {
	if described == "" {
		return fmt.Sprintf("0.0.0+%s.%.12s", at.Format("20060102150405"), commit), nil
	}
	v, since := strings.TrimPrefix(described, "v"), ""
	if m := after.FindStringSubmatch(v); m != nil {
		v, since = strings.TrimSuffix(v, m[0]), fmt.Sprintf("+%s.g%s", m[1], m[2])
	}
	v = strings.Replace(v, "-", "~", 1) + since
	if strings.ContainsFunc(v, func(c rune) bool {
		return !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+~", c)
	}) {
		return "", fmt.Errorf("%q is no version that dpkg and rpm both take: name tags such as v1.2.0 or v1.3.0-rc.1", described)
	}
	return v, nil
}
