// SPDX-License-Identifier: Apache-2.0

package report

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

// TestPeerChromium shows the page of a small and of a large site as a browser and a printer
// see it: it is not blank, nothing is wider than the window, A4 and Letter
// take it, and each failed part begins a sheet.
func TestPeerChromium(t *testing.T) {
	peertest.Need(t, "chromium", "pdfinfo", "pdftotext")
	dir := t.TempDir()
	b := browser{t, dir}
	if out, err := b.try("about:blank", "--screenshot="+filepath.Join(dir, "blank.png")); err != nil {
		t.Skipf("chromium does not start here: %v\n%s", err, out)
	}
	papers := map[string][]string{"lab": {"Letter", "A4"}, "1024": {"A4"}} // a large one takes long
	for name, in := range map[string]Input{"lab": lab(), "1024": large(1024)} {
		var page bytes.Buffer
		if err := HTML(&page, in); err != nil {
			t.Fatal(err)
		}
		for _, paper := range papers[name] {
			text := strings.Replace(page.String(), "@page { margin: 12mm; }", "@page { margin: 12mm; size: "+paper+"; }", 1)
			if text == page.String() {
				t.Fatal("the page has no margins")
			}
			file := filepath.Join(dir, name+paper+".html")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			b.prints(file, paper, len(collectFailed(orderInput(in))))
		}
		shot := filepath.Join(dir, name+".png")
		b.run(filepath.Join(dir, name+"A4.html"), "--screenshot="+shot, "--window-size=1100,1600")
		inkOf(t, shot)
	}
}

type browser struct {
	t   *testing.T
	dir string
}

func (b browser) try(url string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	args = append([]string{"--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=" + filepath.Join(b.dir, "profile")}, args...)
	c := exec.CommandContext(ctx, "chromium", append(args, url)...)
	c.WaitDelay = 5 * time.Second
	return c.CombinedOutput()
}

func (b browser) run(file string, args ...string) {
	b.t.Helper()
	if out, err := b.try("file://"+file, args...); err != nil {
		b.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// prints prints a page, and wants the paper, and a sheet for each part that begins with its
// name.
func (b browser) prints(file, paper string, parts int) {
	b.t.Helper()
	pdf := strings.TrimSuffix(file, ".html") + ".pdf"
	b.run(file, "--no-pdf-header-footer", "--print-to-pdf="+pdf)
	info, err := exec.CommandContext(b.t.Context(), "pdfinfo", pdf).Output()
	if err != nil {
		b.t.Fatal(err)
	}
	if want := map[string]string{"A4": "A4", "Letter": "letter"}[paper]; !strings.Contains(string(info), want) {
		b.t.Errorf("%s is not printed on %s:\n%s", file, paper, info)
	}
	text, err := exec.CommandContext(b.t.Context(), "pdftotext", "-layout", pdf, "-").Output()
	if err != nil {
		b.t.Fatal(err)
	}
	begun := 0
	sheets := strings.Split(string(text), "\f")
	for _, sheet := range sheets[1:] {
		if first, _, _ := strings.Cut(strings.TrimSpace(sheet), "\n"); strings.Contains(first, "rail 3") || strings.Contains(first, "rail 0") {
			begun++
		}
	}
	if begun < parts {
		b.t.Errorf("%s: of %d parts %d begin one of %d sheets", file, parts, begun, len(sheets))
	}
	if !strings.Contains(sheets[0], "Not accepted as a whole") {
		b.t.Errorf("%s: the first sheet has no verdict:\n%s", file, sheets[0])
	}
}

// inkOf wants a screenshot with something on it, and white at its right edge, where a page
// that is too wide would be cut.
func inkOf(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shot, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	dark, edge := 0, 0
	size := shot.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			g := color.GrayModel.Convert(shot.At(x, y)).(color.Gray)
			if g.Y < 128 {
				dark++
			}
			if x == size.Max.X-1 && g.Y < 250 {
				edge++
			}
		}
	}
	if dark < 2000 || edge > 0 {
		t.Errorf("%s", fmt.Sprintf("%s: %d dark pixels, %d at the right edge", path, dark, edge))
	}
	if keep := os.Getenv("IRONRAIL_KEEP_SHOTS"); keep != "" {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(keep, filepath.Base(path)), b, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
