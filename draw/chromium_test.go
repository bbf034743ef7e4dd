// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPeerChromium shows the page of a site as a browser and a printer see it: it is
// not blank, nothing is wider than the window, and it prints no more pages than sheets.
func TestPeerChromium(t *testing.T) {
	peertest.Need(t, "chromium", "pdfinfo")
	dir := t.TempDir()
	d := newTestDrawing(sized(9), Options{})
	sheets := d.All()
	var b bytes.Buffer
	if err := d.HTML(&b, sheets, nil); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "site.html")
	if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	try := func(url string, args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		args = append([]string{"--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + filepath.Join(dir, "profile")}, args...)
		c := exec.CommandContext(ctx, "chromium", append(args, url)...)
		c.WaitDelay = 5 * time.Second
		return c.CombinedOutput()
	}
	if out, err := try("about:blank", "--screenshot="+filepath.Join(dir, "blank.png")); err != nil {
		t.Skipf("chromium does not start here: %v\n%s", err, out)
	}
	run := func(args ...string) {
		if out, err := try("file://"+page, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	shot := filepath.Join(dir, "site.png")
	run("--screenshot="+shot, "--window-size=1000,1400")
	inkOf(t, shot)
	pdf := filepath.Join(dir, "site.pdf")
	run("--no-pdf-header-footer", "--print-to-pdf="+pdf)
	out, err := exec.CommandContext(t.Context(), "pdfinfo", pdf).Output()
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for line := range strings.Lines(string(out)) {
		if n, ok := strings.CutPrefix(line, "Pages:"); ok {
			if _, err := fmt.Sscan(n, &pages); err != nil {
				t.Fatal(err)
			}
		}
	}
	if least := 3; pages < least || pages > len(sheets)+1 { // nine elevations take three
		t.Errorf("%d sheets are printed on %d pages", len(sheets), pages)
	}
	if !strings.Contains(string(out), "A3") {
		t.Errorf("pages are not A3:\n%s", out)
	}
}

// inkOf wants a screenshot with something on it, and white at its right edge,
// where a page that is too wide would be cut.
func inkOf(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	ink, cut, size := 0, 0, img.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			if g, ok := color.GrayModel.Convert(img.At(x, y)).(color.Gray); ok && g.Y < 200 {
				ink++
				if x >= size.Max.X-4 {
					cut++
				}
			}
		}
	}
	if share := float64(ink) / float64(size.Dx()*size.Dy()); share < 0.005 {
		t.Errorf("only %.2f%% of the screenshot is not white", 100*share)
	}
	if cut > 0 {
		t.Errorf("%d points at the right edge: the page is wider than the window", cut)
	}
}
