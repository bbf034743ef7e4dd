// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
)

// tools are what a build runs, and files it reads, with the package that has them.
var tools = []struct{ name, pkg string }{
	{"mmdebstrap", "mmdebstrap"},
	{"mke2fs", "e2fsprogs"},
	{"mkfs.vfat", "dosfstools"},
	{"mcopy", "mtools"},
	{"grub-mkimage", "grub-common"},
	{grubBIOS + "/boot.img", "grub-pc-bin"},
	{grubEFI + "/kernel.img", "grub-efi-amd64-bin"},
}

// checkTools reports everything that is missing at once.
func (b *builder) checkTools(context.Context) error {
	var missing []string
	for _, t := range tools {
		var err error
		if strings.HasPrefix(t.name, "/") {
			_, err = os.Stat(t.name)
		} else {
			_, err = exec.LookPath(t.name)
		}
		if err != nil {
			missing = append(missing, t.pkg)
		}
	}
	if len(missing) > 0 {
		return errkind.New(errkind.Unsupported, "this controller lacks what builds an image: %s", strings.Join(missing, ", ")).
			Do("Install it: apt-get install " + strings.Join(missing, " "))
	}
	if os.Geteuid() != 0 {
		return errkind.New(errkind.Refused, "an image is built as root: its files belong to many users").Do("Run the build as root.")
	}
	return nil
}

// run runs a tool in the build's folder; see tool.Runner.
func (b *builder) run(ctx context.Context, each func(line string), argv ...string) error {
	r := tool.Runner{Dir: b.dir, Env: []string{
		"SOURCE_DATE_EPOCH=" + epoch, "E2FSPROGS_FAKE_TIME=" + epoch, "MKE2FS_CONFIG=" + b.path(mke2fsConf), "MTOOLS_SKIP_CHECK=1",
	}}
	return r.Run(ctx, each, argv...)
}
