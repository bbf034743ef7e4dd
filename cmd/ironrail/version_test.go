// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"regexp"
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	t.Parallel()
	const commit = "0123456789abcdef"
	made := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: commit}
	clean := debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, c := range []struct {
		name    string
		info    *debug.BuildInfo
		release string
		text    string
		json    string
	}{
		{"make build at a tag", made("v1.2.0", revision, clean), "v1.2.0",
			"ironrail v1.2.0\nrevision 0123456789abcdef\nbuilt with go1.26.8\n",
			`{"version":"v1.2.0","revision":"0123456789abcdef","modified":false,"go":"go1.26.8"}`},
		{"make build after a tag", made("v1.2.1-0.20261123222300-0123456789ab", revision, clean), "v1.2.0-14-g0123456789ab",
			"ironrail v1.2.0-14-g0123456789ab\nrevision 0123456789abcdef\nbuilt with go1.26.8\n",
			`{"version":"v1.2.0-14-g0123456789ab","revision":"0123456789abcdef","modified":false,"go":"go1.26.8"}`},
		{"make build of modified files", made("v1.2.0+dirty", revision, modified), "v1.2.0",
			"ironrail v1.2.0+dirty\nrevision 0123456789abcdef (modified)\nbuilt with go1.26.8\n",
			`{"version":"v1.2.0+dirty","revision":"0123456789abcdef","modified":true,"go":"go1.26.8"}`},
		{"make build without version control in the program", made("(devel)"), "v1.2.0",
			"ironrail v1.2.0\nbuilt with go1.26.8\n",
			`{"version":"v1.2.0","go":"go1.26.8"}`},
		{"a module", made("v1.2.3"), "",
			"ironrail v1.2.3\nbuilt with go1.26.8\n",
			`{"version":"v1.2.3","go":"go1.26.8"}`},
		{"modified files of a module", made("v1.2.3+dirty", revision, modified), "",
			"ironrail v1.2.3+dirty\nrevision 0123456789abcdef (modified)\nbuilt with go1.26.8\n",
			`{"version":"v1.2.3+dirty","revision":"0123456789abcdef","modified":true,"go":"go1.26.8"}`},
		{"a commit", made("(devel)", revision), "",
			"ironrail 0123456789ab\nrevision 0123456789abcdef\nbuilt with go1.26.8\n",
			`{"version":"0123456789ab","revision":"0123456789abcdef","go":"go1.26.8"}`},
		{"built with -buildvcs=false", made("(devel)"), "",
			"ironrail unreleased+digest\nbuilt with go1.26.8\n",
			`{"version":"unreleased+digest","go":"go1.26.8"}`},
		{"no build information", nil, "",
			"ironrail unreleased+digest\n",
			`{"version":"unreleased+digest"}`},
	} {
		got := buildOf(c.info, c.release, func() string { return "digest" })
		if text := got.page().String(); text != c.text {
			t.Errorf("%s: text is\n%swant\n%s", c.name, text, c.text)
		}
		if data, err := json.Marshal(got); err != nil || string(data) != c.json {
			t.Errorf("%s: JSON is\n%s (%v), want\n%s", c.name, data, err, c.json)
		}
	}
	if got := ownDigest(); !regexp.MustCompile(`^sha256\.[0-9a-f]{12}$`).MatchString(got) {
		t.Errorf("the digest of this program is %q", got)
	}
}
