// SPDX-License-Identifier: Apache-2.0

// Package chromium has a real Chromium look at pages in tests: as a browser shows them, and as a
// printer gets them. web/webtest speaks with one that stays.
package chromium

import (
	"context"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
)

// hang is how long a browser may take for one page: it judges nothing.
const hang = 2 * time.Minute

// Flags are those of every start, without a window and with a profile in a folder.
func Flags(profile string) []string {
	return []string{"--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + profile}
}

// Browser starts a Chromium for each page. It belongs to one test.
type Browser struct {
	t   testing.TB
	dir string
}

// Open makes a browser; the test is skipped where there is none, or where it does not start.
func Open(t testing.TB) Browser {
	t.Helper()
	peertest.Need(t, "chromium")
	b := Browser{t, t.TempDir()}
	if out, err := b.try("about:blank", "--screenshot="+filepath.Join(b.dir, "blank.png")); err != nil {
		t.Skipf("chromium does not start here: %v\n%s", err, out)
	}
	return b
}

func (b Browser) try(url string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), hang)
	defer cancel()
	c := exec.CommandContext(ctx, "chromium", append(append(Flags(filepath.Join(b.dir, "profile")), args...), url)...)
	c.WaitDelay = 5 * time.Second
	return c.CombinedOutput()
}

func (b Browser) run(file string, args ...string) {
	b.t.Helper()
	if out, err := b.try("file://"+file, args...); err != nil {
		b.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// Print writes a page as a printer gets it to a PDF.
func (b Browser) Print(file, pdf string) {
	b.t.Helper()
	b.run(file, "--no-pdf-header-footer", "--print-to-pdf="+pdf)
}

// Shoot writes what a window of a size, such as 1000,1400, shows of a page to a PNG. It wants
// something on it, and white at its right edge, where a page that is too wide would be cut.
func (b Browser) Shoot(file, size, shot string) {
	b.t.Helper()
	b.run(file, "--screenshot="+shot, "--window-size="+size)
	f, err := os.Open(shot)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		b.t.Fatal(err)
	}
	ink, cut, at := 0, 0, img.Bounds()
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			if g, ok := color.GrayModel.Convert(img.At(x, y)).(color.Gray); ok && g.Y < 200 {
				ink++
				if x >= at.Max.X-4 {
					cut++
				}
			}
		}
	}
	if share := float64(ink) / float64(at.Dx()*at.Dy()); share < 0.005 {
		b.t.Errorf("%s: only %.2f%% of the screenshot is not white", shot, 100*share)
	}
	if cut > 0 {
		b.t.Errorf("%s: %d points at the right edge: the page is wider than the window", shot, cut)
	}
}
