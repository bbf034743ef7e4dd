// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"regexp"
	"strconv"
)

// A saved plan, format 2, is lines of JSON that are written and read one at a time:
//
//	{"format":2,...,"steps":N}      the plan without its steps
//	"..."                           a text that the steps after it refer to by its number, from 0
//	{"of":"n1","id":3,"why":[...]}  a step: each field a number of a text, or [value] itself
//	{"seal":{"key":...,"hmac":...}} the last line
//
// A text is the JSON of a field in which subjectMark stands for the name in "of". A
// field that is written for the second time becomes a text.

// subjectMark stands, in a text, for the name of a step's subject. JSON has no such
// byte outside of an escape.
const subjectMark = "\x01"

// shortest is the length from which a field is worth a text.
const shortest = 6

// Bounds of what is read: of a line (a group step of 100,000 nodes has some 10 MB) and
// of the number of steps (100,000 nodes have some 1.5 million).
const (
	longestLine = 256 << 20
	mostSteps   = 16 << 20
)

// header is the first line. Its fields that a Plan has too take their place.
type header struct {
	Format int `json:"format"`
	Plan
	Steps int `json:"steps"`
}

// Save writes a plan: in format 2, sealed with the key, or with the empty Key
// without a valid seal. It holds one step at a time.
func Save(w io.Writer, p *Plan, k Key) error {
	mac := hmac.New(sha256.New, k)
	out := bufio.NewWriterSize(w, 1<<20)
	e := &encoder{w: io.MultiWriter(out, mac), once: map[uint64]struct{}{}, texts: map[string]int{}, seed: maphash.MakeSeed()}
	bare := *p
	bare.Steps = nil
	e.line(header{Format: Format, Plan: bare, Steps: len(p.Steps)})
	for i := range p.Steps {
		e.step(&p.Steps[i])
	}
	if e.err != nil {
		return e.err
	}
	var s Seal
	if len(k) > 0 {
		s = Seal{Key: k.Fingerprint(), HMAC: hex.EncodeToString(mac.Sum(nil))}
	}
	e.w = out
	e.line(struct {
		Seal Seal `json:"seal"`
	}{s})
	if e.err != nil {
		return e.err
	}
	return out.Flush()
}

// encoder writes the lines of a saved plan.
type encoder struct {
	w     io.Writer
	err   error // the first one; nothing is written after it
	seed  maphash.Seed
	once  map[uint64]struct{} // hashes of fields that were written
	texts map[string]int      // their numbers
	buf   bytes.Buffer
}

func (e *encoder) write(line []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(line)
	}
}

func (e *encoder) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		e.err = err
		return
	}
	e.write(append(b, '\n'))
}

// step writes one step, after the texts that it is the first to share.
func (e *encoder) step(s *Step) {
	raw, err := json.Marshal(s)
	if err != nil {
		e.err = err
		return
	}
	e.buf.Reset()
	of, _ := json.Marshal(s.Subject.Name)
	e.buf.WriteString(`{"of":`)
	e.buf.Write(of)
	err = eachField(raw, func(name, value []byte) {
		e.buf.WriteString(`,"`)
		e.buf.Write(name)
		e.buf.WriteString(`":`)
		if n, ok := e.number(value, s.Subject.Name); ok {
			e.buf.Write(strconv.AppendInt(nil, int64(n), 10))
			return
		}
		e.buf.WriteByte('[')
		e.buf.Write(value)
		e.buf.WriteByte(']')
	})
	if err != nil {
		e.err = err
		return
	}
	e.buf.WriteString("}\n")
	e.write(e.buf.Bytes())
}

// number returns the number of the text of a field; false when it is written for the
// first time, or short.
func (e *encoder) number(value []byte, subject string) (int, bool) {
	if len(value) < shortest {
		return 0, false
	}
	if subject != "" {
		value = bytes.ReplaceAll(value, []byte(subject), []byte(subjectMark))
	}
	if n, ok := e.texts[string(value)]; ok {
		return n, true
	}
	h := maphash.Bytes(e.seed, value)
	if _, again := e.once[h]; !again {
		e.once[h] = struct{}{}
		return 0, false
	}
	n := len(e.texts)
	e.texts[string(value)] = n
	e.line(string(value))
	return n, true
}

// eachField calls f for every field of an object, as encoding/json writes it.
func eachField(object []byte, f func(name, value []byte)) error {
	depth, from := 0, 0
	var name []byte
	for i := 0; i < len(object); i++ {
		switch c := object[i]; c {
		case '"':
			for i++; i < len(object) && object[i] != '"'; i++ {
				if object[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth == 1 {
				from = i + 1
			}
		case ':':
			if depth == 1 {
				name, from = bytes.Trim(object[from:i], `"`), i+1
			}
		case ',', '}', ']':
			if depth == 1 && i > from {
				f(name, object[from:i])
				from = i + 1
			}
			if c != ',' {
				depth--
			}
		}
	}
	if depth != 0 {
		return fmt.Errorf("plan: not an object: %.40q", object)
	}
	return nil
}

// FormatError says that a saved plan has another format than this package reads.
type FormatError struct{ Format int }

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("it has plan format %d; this version of ironrail supports format %d", e.Format, Format)
}

// Open reads a saved plan, one step at a time. problem says why its seal is not valid
// under the key; "" for a valid one: nothing may be applied of any other. A
// FormatError is of another format, any other error of what is no saved plan.
func Open(r io.Reader, k Key) (p *Plan, problem string, err error) {
	d := &decoder{r: bufio.NewReaderSize(r, 1<<20), mac: hmac.New(sha256.New, k)}
	p, count, err := d.header()
	if err != nil {
		return nil, "", err
	}
	for {
		line, err := d.next()
		if err != nil {
			return nil, "", fmt.Errorf("it is cut off after %d of %d steps: %w", len(p.Steps), count, err)
		}
		switch {
		case line[0] == '"':
			err = d.text(line)
		case bytes.HasPrefix(line, []byte(`{"seal":`)):
			problem, err = d.seal(line, k)
			if err == nil && len(p.Steps) != count {
				err = fmt.Errorf("it has %d steps, and says %d", len(p.Steps), count)
			}
			return p, problem, err
		default:
			var s Step
			if s, err = d.step(line); err == nil {
				p.Steps = append(p.Steps, s)
			}
		}
		if err != nil {
			return nil, "", err
		}
		if len(p.Steps) > count {
			return nil, "", fmt.Errorf("it has more than the %d steps that it says", count)
		}
		d.mac.Write(line)
	}
}

// decoder reads the lines of a saved plan.
type decoder struct {
	r     *bufio.Reader
	mac   hash.Hash
	texts [][]byte
	buf   []byte // of the step being read
	line  []byte // of more than the reader's buffer
}

// next returns a line with its end; it is good until the next call.
func (d *decoder) next() ([]byte, error) {
	line, err := d.r.ReadSlice('\n')
	if err == nil {
		return line, nil
	}
	d.line = append(d.line[:0], line...)
	for err == bufio.ErrBufferFull && len(d.line) < longestLine {
		line, err = d.r.ReadSlice('\n')
		d.line = append(d.line, line...)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return d.line, err
}

// IsSaved reports whether what is read begins as a saved plan of any format does.
func IsSaved(r io.Reader) bool {
	_, ok := readFormat(bufio.NewReader(r))
	return ok
}

// readFormat is the format of a saved plan, in which it stands first.
func readFormat(r *bufio.Reader) (int, bool) {
	lead, _ := r.Peek(64)
	m := regexp.MustCompile(`^\s*\{\s*"format"\s*:\s*([0-9]{1,9})\b`).FindSubmatch(lead)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(string(m[1]))
	return n, err == nil
}

// header reads the first line.
func (d *decoder) header() (*Plan, int, error) {
	format, ok := readFormat(d.r)
	if !ok {
		return nil, 0, errors.New("it does not begin with a format")
	}
	if format != Format {
		return nil, 0, &FormatError{Format: format}
	}
	line, err := d.next()
	if err != nil {
		return nil, 0, err
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, 0, err
	}
	if h.Steps < 0 || h.Steps > mostSteps {
		return nil, 0, fmt.Errorf("it says %d steps", h.Steps)
	}
	d.mac.Write(line)
	p := h.Plan
	p.Format, p.Steps = h.Format, make([]Step, 0, min(h.Steps, 1<<16))
	return &p, h.Steps, nil
}

// text reads a text.
func (d *decoder) text(line []byte) error {
	var t string
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	d.texts = append(d.texts, []byte(t))
	return nil
}

// step reads a step: its JSON is put together again, and decoded.
func (d *decoder) step(line []byte) (s Step, err error) {
	d.buf = append(d.buf[:0], '{')
	of, bad := "", error(nil)
	err = eachField(bytes.TrimSuffix(line, []byte("\n")), func(name, value []byte) {
		if string(name) == "of" {
			bad = json.Unmarshal(value, &of)
			return
		}
		if len(d.buf) > 1 {
			d.buf = append(d.buf, ',')
		}
		d.buf = append(append(append(d.buf, '"'), name...), '"', ':')
		if n := len(value); n > 2 && value[0] == '[' && value[n-1] == ']' {
			d.buf = append(d.buf, value[1:n-1]...)
			return
		}
		n, err := strconv.Atoi(string(value))
		if err != nil || n < 0 || n >= len(d.texts) {
			bad = fmt.Errorf("a step refers to the text %.20q, which is not there", value)
			return
		}
		d.buf = append(d.buf, bytes.ReplaceAll(d.texts[n], []byte(subjectMark), []byte(of))...)
	})
	if err = errors.Join(err, bad); err != nil {
		return s, err
	}
	return s, json.Unmarshal(append(d.buf, '}'), &s)
}

// seal reads the last line.
func (d *decoder) seal(line []byte, k Key) (problem string, err error) {
	var last struct {
		Seal Seal `json:"seal"`
	}
	if err := json.Unmarshal(line, &last); err != nil {
		return "", err
	}
	if _, err := d.r.ReadByte(); err != io.EOF {
		return "", errors.New("something follows its seal")
	}
	return last.Seal.problem(k, d.mac.Sum(nil)), nil
}
