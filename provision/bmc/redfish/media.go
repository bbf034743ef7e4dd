package redfish

import (
	"context"
	"net/http"
	"slices"

	"github.com/ironrail/ironrail/provision/errkind"
)

// media is what is read of a VirtualMedia resource.
type media struct {
	path       string
	MediaTypes []text
	Image      text
	Inserted   bool
	Actions    struct {
		Insert action `json:"#VirtualMedia.InsertMedia"`
		Eject  action `json:"#VirtualMedia.EjectMedia"`
	}
}

// action is one action of a resource.
type action struct {
	Target text `json:"target"`
}

// Media returns what is in the node's virtual CD drive; "": nothing.
func (c *Client) Media(ctx context.Context) (image string, err error) {
	m, err := c.drive(ctx)
	if err != nil || !m.Inserted && m.Image == "" {
		return "", err
	}
	return string(m.Image), nil
}

// drive finds the first virtual drive for CDs.
func (c *Client) drive(ctx context.Context) (media, error) {
	s, err := c.system(ctx)
	if err != nil {
		return media{}, err
	}
	var m struct{ VirtualMedia link }
	if c.place.manager != "" {
		if _, err := c.get(ctx, c.place.manager, &m); err != nil {
			return media{}, err
		}
	}
	for _, l := range []link{m.VirtualMedia, s.VirtualMedia} {
		if l == "" {
			continue
		}
		all, err := c.members(ctx, string(l), maxSystems)
		if err != nil {
			return media{}, err
		}
		for _, l := range all {
			d := media{path: string(l)}
			if _, err := c.get(ctx, d.path, &d); err != nil {
				return media{}, err
			}
			if slices.ContainsFunc(d.MediaTypes, func(t text) bool { return t == "CD" || t == "DVD" }) {
				return d, nil
			}
		}
	}
	return media{}, unsupported("virtual CD drive")
}

// InsertMedia puts the image at a URL into the virtual CD drive. What is in it is
// taken out first: some services go on showing an old image, and refuse a new one
// (ironic drivers/modules/redfish/boot.py:377).
func (c *Client) InsertMedia(ctx context.Context, url string) error {
	d, err := c.drive(ctx)
	if err != nil {
		return err
	}
	if d.Inserted || d.Image != "" {
		if err := c.eject(ctx, d); err != nil {
			return err
		}
	}
	if d.Actions.Insert.Target == "" { // Lenovo
		_, err := c.patch(ctx, d.path, map[string]any{"Image": url, "Inserted": true})
		return err
	}
	err = c.act(ctx, string(d.Actions.Insert.Target), "insert an image", map[string]any{"Image": url, "Inserted": true, "WriteProtected": true})
	if isStatus(err, http.StatusBadRequest) { // Supermicro X11 knows the image only
		err = c.act(ctx, string(d.Actions.Insert.Target), "insert an image", map[string]any{"Image": url})
	}
	return err
}

// EjectMedia empties the virtual CD drive; an empty one is left alone.
func (c *Client) EjectMedia(ctx context.Context) error {
	d, err := c.drive(ctx)
	if err != nil || !d.Inserted && d.Image == "" {
		return err
	}
	return c.eject(ctx, d)
}

func (c *Client) eject(ctx context.Context, d media) error {
	if d.Actions.Eject.Target == "" {
		_, err := c.patch(ctx, d.path, map[string]any{"Image": nil, "Inserted": false})
		return err
	}
	return c.act(ctx, string(d.Actions.Eject.Target), "eject the image", map[string]any{})
}

// act sends an action to its target, once.
func (c *Client) act(ctx context.Context, target, what string, body any) error {
	path, ok := cleanPath(target)
	if !ok {
		return errkind.New(errkind.Unsupported, "the bmc has no action to %s", what)
	}
	_, err := c.post(ctx, path, body)
	return err
}

// unsupported says that the service lacks something.
func unsupported(what string) error {
	return errkind.New(errkind.Unsupported, "the bmc shows no %s", what)
}
