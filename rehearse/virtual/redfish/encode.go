// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// get answers a GET with the route's resource.
func (c *call) get(rt *route) {
	if rt.raw != nil {
		rt.raw(c)
		return
	}
	if rt.get == nil {
		c.w.Header().Set("Allow", rt.allow())
		c.fail("OperationNotAllowed")
		return
	}
	o := rt.get(c)
	if c.failed {
		return
	}
	if o == nil {
		c.missing()
		return
	}
	c.finish(o)
	if c.s.p.Expand && c.r.URL.Query().Has("$expand") {
		c.expand(o)
	}
	body, etag := c.s.encode(o)
	c.w.Header().Set("ETag", etag)
	if c.r.Header.Get("If-None-Match") == etag {
		c.w.WriteHeader(http.StatusNotModified)
		return
	}
	c.write(http.StatusOK, body)
}

// finish gives a resource what all have.
func (c *call) finish(o obj) {
	if _, ok := o["@odata.id"]; !ok {
		o["@odata.id"] = c.path
	}
	if m, ok := o["Members"].([]obj); ok && len(m) == 0 && c.s.q.MembersNull {
		o["Members"] = nil
	}
}

// expand replaces the members of a collection by what they refer to.
func (c *call) expand(o obj) {
	members, _ := o["Members"].([]obj)
	for i, m := range members {
		path, _ := m["@odata.id"].(string)
		rt, args := c.s.match(path)
		if rt == nil || rt.get == nil {
			continue
		}
		sub := &call{s: c.s, w: c.w, r: c.r, path: path, args: args, who: c.who}
		if full := rt.get(sub); full != nil {
			sub.finish(full)
			members[i] = full
		}
	}
}

// collection is a Redfish collection with members below the path.
func (c *call) collection(kind, name string, ids []string) obj {
	members := make([]obj, len(ids))
	for i, id := range ids {
		members[i] = obj{"@odata.id": c.path + "/" + id}
	}
	return obj{"@odata.type": "#" + kind + "Collection." + kind + "Collection", "Name": name,
		"Members": members, "Members@odata.count": len(members)}
}

// volatile is the property that is not part of an entity tag: it changes with
// every second.
const volatile = "DateTime"

// encode renders a resource and its entity tag, which is also put in front as
// @odata.etag.
func (s *server) encode(o obj) (body []byte, etag string) {
	now, hasTime := o[volatile]
	delete(o, volatile)
	rest, err := json.Marshal(o)
	if err != nil { // resources are made of plain values only
		panic(err)
	}
	h := fnv.New64a()
	_, _ = h.Write(rest)
	etag = `"` + strconv.FormatUint(h.Sum64(), 16) + `"`
	if s.q.WeakETag {
		etag = "W/" + etag
	}
	body = make([]byte, 0, len(rest)+80)
	body = fmt.Appendf(body, `{"@odata.etag":%q,`, etag)
	if hasTime {
		body = fmt.Appendf(body, `%q:%q,`, volatile, now)
	}
	return append(body, rest[1:]...), etag
}

// precondition checks If-Match of a PATCH; when it fails it has answered.
func (c *call) precondition(rt *route) bool {
	match := c.r.Header.Get("If-Match")
	switch match {
	case "":
		if !c.s.q.RequireETag {
			return true
		}
		if c.s.p.Vendor == "AMI" {
			c.failOwn(http.StatusPreconditionRequired, "Ami.1.0.PreconditionHeaderMissing",
				"The request did not provide the required precondition, such as an If-Match or If-None-Match header.")
		} else {
			c.fail("PreconditionRequired")
		}
		return false
	case "*":
		return true
	}
	if rt.get == nil {
		return true
	}
	o := rt.get(c)
	if o == nil {
		c.missing()
		return false
	}
	c.finish(o)
	_, etag := c.s.encode(o)
	etag = strings.TrimPrefix(etag, "W/") // a weak tag in If-Match never matches
	for tag := range strings.SplitSeq(match, ",") {
		if strings.TrimSpace(tag) == etag {
			return true
		}
	}
	c.fail("PreconditionFailed")
	return false
}

// send answers with a body that is not a resource of its own.
func (c *call) send(status int, o obj) {
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	c.write(status, body)
}

func (c *call) write(status int, body []byte) {
	c.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // the client has gone; there is nobody to tell
}

// body reads the request's JSON object; when there is none it has answered. An
// empty body is an empty object.
func (c *call) body() (obj, bool) {
	raw, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		c.failWith(http.StatusRequestEntityTooLarge, "GeneralError")
		return nil, false
	}
	if err != nil {
		c.fail("MalformedJSON")
		return nil, false
	}
	o := obj{}
	if len(strings.TrimSpace(string(raw))) == 0 {
		return o, true
	}
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		c.fail("MalformedJSON")
		return nil, false
	}
	return o, true
}

// text reads a string property; ok is false when it is of another type, and
// then it has answered.
func (c *call) text(o obj, key string) (value string, has, ok bool) {
	v, has := o[key]
	if !has {
		return "", false, true
	}
	value, ok = v.(string)
	if !ok {
		c.fail("PropertyValueTypeError", fmt.Sprint(v), key)
	}
	return value, true, ok
}

// texts reads several string properties, as text does; what o has not got is left out.
func (c *call) texts(o obj, keys []string) (values map[string]string, ok bool) {
	values = map[string]string{}
	for _, key := range keys {
		value, has, ok := c.text(o, key)
		if !ok {
			return nil, false
		}
		if has {
			values[key] = value
		}
	}
	return values, true
}

// object reads a property that is an object, as text does.
func (c *call) object(o obj, key string) (value obj, has, ok bool) {
	v, has := o[key]
	if !has {
		return nil, false, true
	}
	value, ok = v.(obj)
	if !ok {
		c.fail("PropertyValueTypeError", fmt.Sprint(v), key)
	}
	return value, true, ok
}

// only checks that o has no other properties than those named and annotations;
// when it has, it has answered.
func (c *call) only(o obj, known ...string) bool {
	for _, k := range slices.Sorted(maps.Keys(o)) { // the same one is named each time
		if !slices.Contains(known, k) && !strings.Contains(k, "@") {
			c.fail("PropertyUnknown", k)
			return false
		}
	}
	return true
}
