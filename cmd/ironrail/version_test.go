package main

import (
	"regexp"
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	t.Parallel()
	build := func(version, revision string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: revision}}}
	}
	for _, c := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"a release", build("v1.2.3", "0123456789abcdef"), "v1.2.3"},
		{"a commit", build("(devel)", "0123456789abcdef"), "0123456789ab"},
		{"built with -buildvcs=false", build("(devel)", ""), "unreleased+digest"},
		{"no build information", nil, "unreleased+digest"},
	} {
		if got := versionOf(c.info, func() string { return "digest" }); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := ownDigest(); !regexp.MustCompile(`^sha256\.[0-9a-f]{12}$`).MatchString(got) {
		t.Errorf("the digest of this program is %q", got)
	}
}
