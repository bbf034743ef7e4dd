// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// answer is a whole answer of the BMC.
type answer struct {
	path   string
	status int
	header http.Header
	body   []byte
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

func (a answer) redirects() bool { return a.status >= 301 && a.status <= 308 }

// decode reads the body into v. A property of another type than the schema's is
// left out, as if it were missing: services send numbers as strings, "" for null
// and objects for links, mostly in properties that nobody asks for.
func (a answer) decode(v any) error {
	if len(bytes.TrimSpace(a.body)) == 0 {
		return errkind.New(errkind.Internal, "the answer to %s is empty", a.path)
	}
	if err := json.Unmarshal(a.body, v); err != nil && !isTypeError(err) {
		return errkind.New(errkind.Internal, "the answer to %s is no JSON: %s", a.path, OneLine(err.Error()))
	}
	return nil
}

// isTypeError reports whether only a property's type is wrong; encoding/json then
// has read everything else.
func isTypeError(err error) bool {
	_, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok
}

// etag returns the resource's entity tag: the header's, else the property's.
func (a answer) etag() string {
	if t := a.header.Get("ETag"); t != "" {
		return t
	}
	var doc struct {
		Tag text `json:"@odata.etag"`
	}
	_ = json.Unmarshal(a.body, &doc)
	return string(doc.Tag)
}

// location returns the path that the header Location names, or "".
func (a answer) location() string {
	p, _ := cleanPath(a.header.Get("Location"))
	return p
}

// text is a string as services send it: null, numbers and booleans are strings
// too, and HPE pads serial numbers with spaces.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	switch {
	case json.Unmarshal(b, &s) == nil:
		*t = text(strings.Trim(s, " \t\r\n\x00"))
	case len(b) > 0 && b[0] != '{' && b[0] != '[' && string(b) != "null":
		*t = text(b)
	}
	return nil
}

// number is a number as services send it, also as a string; nil: none.
type number struct{ value *float64 }

// UnmarshalJSON never fails.
func (n *number) UnmarshalJSON(b []byte) error {
	if f, err := strconv.ParseFloat(strings.Trim(string(b), `" `), 64); err == nil && f == f && f < 1e300 && f > -1e300 {
		n.value = &f
	}
	return nil
}

// link is a reference to a resource, as a path on the same BMC; "": none.
type link string

// UnmarshalJSON never fails: what is no reference is none. A list of one stands for its
// member. Of several none is chosen: whoever follows the link gets an error that names
// them, and whoever does not is not kept from the rest of the resource.
func (l *link) UnmarshalJSON(b []byte) error {
	var all links
	_ = all.UnmarshalJSON(b)
	if len(all) == 0 {
		return nil
	}
	*l = all[0]
	if i := slices.IndexFunc(all, func(x link) bool { return x != all[0] }); i > 0 {
		*l = manyLinks + all[0] + " and " + all[i]
	}
	return nil
}

// manyLinks begins a link that is several: no path does.
const manyLinks = "several: "

// follow refuses a path that is several links.
func follow(path string) error {
	if many, is := strings.CutPrefix(path, manyLinks); is {
		return errkind.New(errkind.Conflict, "the bmc names several resources where one belongs: %s", OneLine(many)).
			Do("Nothing was sent to any of them. See whether newer firmware of the BMC names one.")
	}
	return nil
}

// or returns the usual place where there is no link.
func (l link) or(usual string) string {
	if l == "" {
		return usual
	}
	return string(l)
}

// links is a list of references. null, one object and a list are all seen.
type links []link

// UnmarshalJSON never fails.
func (l *links) UnmarshalJSON(b []byte) error {
	type reference struct {
		ID   text `json:"@odata.id"`
		Href text `json:"href"`
	}
	var many []reference
	if json.Unmarshal(b, &many) != nil {
		var one reference
		if json.Unmarshal(b, &one) != nil {
			var s string
			_ = json.Unmarshal(b, &s)
			one.ID = text(s)
		}
		many = []reference{one}
	}
	for _, r := range many {
		if p, ok := cleanPath(string(r.ID + r.Href)); ok && len(*l) < maxMembers {
			*l = append(*l, link(p))
		}
	}
	return nil
}

// has reports whether a path is among references, with or without a slash at its end.
func (l links) has(path string) bool {
	path = strings.TrimSuffix(path, "/")
	return slices.ContainsFunc(l, func(x link) bool { return strings.TrimSuffix(string(x), "/") == path })
}

// maxMembers bounds a collection.
const maxMembers = 4096

// cleanPath returns the path of a reference on this BMC. Whatever host a
// reference names, only its path is followed, so that no token leaves for
// somewhere else.
func cleanPath(ref string) (string, bool) {
	u, err := url.Parse(ref)
	if err != nil || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") || len(ref) > 1024 || u.Opaque != "" {
		return "", false
	}
	if clean := path.Clean(u.Path); clean != u.Path && clean+"/" != u.Path {
		return "", false
	}
	p := u.EscapedPath()
	if u.RawQuery != "" {
		p += "?" + u.RawQuery
	}
	return p, true
}

// id returns the last part of a path.
func (l link) id() string { return path.Base(string(l)) }

// texts gives the text of each value.
func texts[T interface{ String() string }](values []T) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, v := range values {
			if !yield(v.String()) {
				return
			}
		}
	}
}
