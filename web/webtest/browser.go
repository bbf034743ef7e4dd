// SPDX-License-Identifier: Apache-2.0

// Package webtest is what tests of the web page share: a real Chromium, and folders of
// sites with something to see.
package webtest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/chromium"
)

// hang is how long a browser may take for one answer: it judges nothing.
const hang = 2 * time.Minute

// Browser is a Chromium that is spoken to over a pipe (Chrome DevTools Protocol). Its tab
// keeps what it logs. It belongs to one test.
type Browser struct {
	t       testing.TB
	out     *os.File
	session string

	mu      sync.Mutex // guards what follows
	next    int
	answers map[int]chan message
	log     []string // errors of the page
}

// message is an answer or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// OpenBrowser starts a Chromium without a profile; the test is skipped where there is none,
// or where it does not start.
func OpenBrowser(t testing.TB, flags ...string) *Browser {
	t.Helper()
	peertest.Need(t, "chromium")
	in, toBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromBrowser, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "ironrail-chromium")
	if err != nil {
		t.Fatal(err)
	}
	flags = append(append(chromium.Flags(profile), "--remote-debugging-pipe", "about:blank"), flags...)
	c := exec.CommandContext(t.Context(), "chromium", flags...)
	c.ExtraFiles = []*os.File{in, out} // 3: it reads, 4: it writes
	c.WaitDelay = 5 * time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it starts others, which end with it
	if err := c.Start(); err != nil {
		t.Skipf("chromium does not start here: %v", err)
	}
	_, _ = in.Close(), out.Close()
	b := &Browser{t: t, out: toBrowser, answers: map[int]chan message{}}
	var wg sync.WaitGroup
	wg.Go(func() { b.listen(fromBrowser) })
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		_ = toBrowser.Close()
		wg.Wait()
		_ = fromBrowser.Close()
		_ = os.RemoveAll(profile)
	})
	var target struct {
		TargetID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// listen reads messages, each with a zero at its end.
func (b *Browser) listen(f *os.File) {
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.answers[m.ID]; m.ID != 0 && c != nil {
			c <- m
			delete(b.answers, m.ID)
		}
		switch m.Method {
		case "Runtime.exceptionThrown":
			b.log = append(b.log, string(m.Params))
		case "Log.entryAdded":
			var e struct {
				Entry struct{ Level, Text, URL string }
			}
			if json.Unmarshal(m.Params, &e) == nil && e.Entry.Level == "error" {
				b.log = append(b.log, e.Entry.Text+" "+e.Entry.URL)
			}
		}
		b.mu.Unlock()
	}
}

// call asks the browser, and reads the answer into out.
func (b *Browser) call(method string, params, out any) {
	b.t.Helper()
	b.mu.Lock()
	b.next++
	id, c := b.next, make(chan message, 1)
	b.answers[id] = c
	b.mu.Unlock()
	if params == nil {
		params = struct{}{}
	}
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
		Session string `json:"sessionId,omitempty"`
	}{id, method, params, b.session})
	if err == nil {
		_, err = b.out.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	select {
	case m := <-c:
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if out != nil {
			if err := json.Unmarshal(m.Result, out); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
	case <-time.After(hang):
		b.t.Fatalf("%s: the browser does not answer", method)
	}
}

// Resize makes the window so large, on a screen with so many dots a pixel.
func (b *Browser) Resize(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
}

// Dark lets pages see a user who prefers dark, or light.
func (b *Browser) Dark(on bool) {
	b.t.Helper()
	value := map[bool]string{true: "dark", false: "light"}[on]
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": value}, map[string]any{"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

// Open loads a page and waits until it is complete.
func (b *Browser) Open(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.Wait(fmt.Sprintf(`document.readyState === "complete" && location.href.split("#")[0] !== "about:blank" && (performance.timeOrigin > 0) && %q !== ""`, url))
}

// Eval runs script, which may await, and reads its value into out; nil where that is not wanted.
func (b *Browser) Eval(script string, out any) {
	b.t.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &r)
	if r.Exception != nil {
		b.t.Fatalf("%s: %s %s", script, r.Exception.Text, r.Exception.Exception.Description)
	}
	if out != nil {
		if err := json.Unmarshal(r.Result.Value, out); err != nil {
			b.t.Fatalf("%s: %v: %s", script, err, r.Result.Value)
		}
	}
}

// Wait waits until script is true.
func (b *Browser) Wait(script string) {
	b.t.Helper()
	for end := time.Now().Add(hang); ; time.Sleep(20 * time.Millisecond) {
		var r struct {
			Result struct {
				Value any `json:"value"`
			} `json:"result"`
		}
		b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &r)
		if r.Result.Value == true {
			return
		}
		if time.Now().After(end) {
			var body string
			b.Eval(`location.href + "\n" + document.body.innerText.slice(0, 2000)`, &body)
			b.t.Fatalf("never true: %s\n%s", script, body)
		}
	}
}

// Click clicks on what a selector finds, as a mouse does.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	b.Eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); if (!e) { throw new Error("there is none"); } e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return {X: r.x + r.width / 2, Y: r.y + r.height / 2}; })()`, selector), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// Key types one key, such as j or Enter.
func (b *Browser) Key(key string) {
	b.t.Helper()
	p := map[string]any{"type": "keyDown", "key": key}
	if len(key) == 1 {
		p["text"] = key
	}
	if key == "Enter" {
		p["text"], p["windowsVirtualKeyCode"] = "\r", 13
	}
	b.call("Input.dispatchKeyEvent", p, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Type types a text into what has the focus.
func (b *Browser) Type(text string) {
	b.t.Helper()
	b.call("Input.insertText", map[string]any{"text": text}, nil)
}

// Screenshot is the window as PNG, or the whole page.
func (b *Browser) Screenshot(whole bool) []byte {
	b.t.Helper()
	var r struct {
		Data string `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}, &r)
	raw, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

// colours are so many of a screenshot that is made small for docs.
const colours = 96

// Shrink makes a screenshot one of few colours, which is a third of its bytes.
func Shrink(raw []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	size, count := img.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	all := slices.Collect(maps.Keys(count))
	slices.SortFunc(all, func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(uint32(a.R)<<16|uint32(a.G)<<8|uint32(a.B), uint32(b.R)<<16|uint32(b.G)<<8|uint32(b.B)))
	})
	var palette color.Palette
	for _, c := range all[:min(len(all), colours)] {
		palette = append(palette, c)
	}
	out, near := image.NewPaletted(size, palette), map[color.RGBA]uint8{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			c := at(x, y)
			i, known := near[c]
			if !known {
				i = uint8(palette.Index(c))
				near[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out)
	return b.Bytes(), err
}

// Errors are the errors that pages logged since the last call: of scripts, of what could not be
// loaded, of what their policy forbids.
func (b *Browser) Errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.log
	b.log = nil
	return out
}
