// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"
	"net/http"
	"strings"
)

// versions answers /redfish, the list of protocol versions (DSP0266, 6.2).
var versions = route{anon: http.MethodGet, raw: func(c *call) { c.send(http.StatusOK, obj{"v1": root + "/"}) }}

func serviceRoot(c *call) obj {
	p := &c.s.p
	o := obj{
		"@odata.type": "#ServiceRoot.v1_11_0.ServiceRoot", "Id": "RootService", "Name": "Root Service",
		"RedfishVersion": p.Version, "UUID": c.s.c.Identity().UUID,
		"Systems": linkTo("Systems"), "Managers": linkTo("Managers"), "Chassis": linkTo("Chassis"),
		"AccountService": linkTo("AccountService"), "EventService": linkTo("EventService"),
		"Tasks": linkTo("TaskService"), "UpdateService": linkTo("UpdateService"), "Registries": linkTo("Registries"),
		"ProtocolFeaturesSupported": obj{
			"ExpandQuery": obj{"ExpandAll": p.Expand, "Levels": false, "Links": false, "NoLinks": p.Expand},
			"SelectQuery": false, "FilterQuery": false, "OnlyMemberQuery": false, "ExcerptQuery": false,
		},
		"Links": obj{"ManagerProvidingService": linkTo("Managers", p.Manager)},
	}
	if !c.s.q.NoSessionService {
		o["SessionService"] = linkTo("SessionService")
		o["Links"].(obj)["Sessions"] = linkTo("SessionService", "Sessions")
	}
	if p.Vendor != "" {
		o["Vendor"] = p.Vendor
	}
	if p.Product != "" {
		o["Product"] = p.Product
	}
	addOEM(o, p.RootOem)
	return o
}

// addOEM adds the maker's own part.
func addOEM(o obj, part obj) {
	if part != nil {
		o["Oem"] = part
	}
}

// services are the resources that the root refers to, for the OData documents.
var services = []struct{ name, schema string }{
	{"Systems", "ComputerSystemCollection"}, {"Managers", "ManagerCollection"}, {"Chassis", "ChassisCollection"},
	{"SessionService", "SessionService"}, {"AccountService", "AccountService"}, {"EventService", "EventService"},
	{"TaskService", "TaskService"}, {"UpdateService", "UpdateService"}, {"Registries", "MessageRegistryFileCollection"},
}

// serveOData is the OData service document (DSP0266, 8.4.5).
func serveOData(c *call) {
	value := []obj{{"name": "Service", "kind": "Singleton", "url": root + "/"}}
	for _, x := range services {
		value = append(value, obj{"name": x.name, "kind": "Singleton", "url": joinURI(x.name)})
	}
	c.send(http.StatusOK, obj{"@odata.context": root + "/$metadata", "value": value})
}

// serveMetadata is the OData metadata document: what schemas there are.
func serveMetadata(c *call) {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0">` + "\n")
	for _, x := range services {
		fmt.Fprintf(&b, "  <edmx:Reference Uri=\"http://redfish.dmtf.org/schemas/v1/%s_v1.xml\"><edmx:Include Namespace=%q/></edmx:Reference>\n", x.schema, x.schema)
	}
	b.WriteString("  <edmx:DataServices><Schema xmlns=\"http://docs.oasis-open.org/odata/ns/edm\" Namespace=\"Service\">" +
		"<EntityContainer Name=\"Service\" Extends=\"ServiceRoot.v1_11_0.ServiceContainer\"/></Schema></edmx:DataServices>\n</edmx:Edmx>\n")
	c.w.Header().Set("Content-Type", "application/xml")
	_, _ = c.w.Write([]byte(b.String()))
}

// base is the name of the message registry.
func (s *server) base() string { return "Base." + s.p.Base + ".0" }

func showRegistries(c *call) obj {
	return c.collection("MessageRegistryFile", "Registry Files", []string{c.s.base(), c.s.p.Registry})
}

func showRegistry(c *call) obj {
	id := c.args[0]
	if id != c.s.base() && id != c.s.p.Registry {
		return nil
	}
	return obj{"@odata.type": "#MessageRegistryFile.v1_1_0.MessageRegistryFile", "Id": id, "Name": id + " Registry File",
		"Registry": id, "Languages": []string{"en"}, "Languages@odata.count": 1, "Location@odata.count": 1,
		"Location": []obj{{"Language": "en", "Uri": c.path + "/registry.json"}}}
}

// registryFile is a registry itself; its JSON is no resource and has no
// @odata.id.
func registryFile(c *call) {
	switch {
	case c.args[1] != "registry.json":
		c.missing()
	case c.args[0] == c.s.base():
		c.send(http.StatusOK, c.s.messageRegistry())
	case c.args[0] == c.s.p.Registry:
		c.send(http.StatusOK, c.s.attributeRegistry())
	default:
		c.missing()
	}
}

func (s *server) messageRegistry() obj {
	all := obj{}
	for _, m := range messages {
		types := make([]string, m.params)
		for i := range types {
			types[i] = "string"
		}
		all[m.id] = obj{"Description": m.text, "Message": m.text, "Severity": m.severity, "MessageSeverity": m.severity,
			"NumberOfArgs": m.params, "ParamTypes": types, "Resolution": m.resolution}
	}
	return obj{"@odata.type": "#MessageRegistry.v1_4_0.MessageRegistry", "Id": s.base(), "Name": "Base Message Registry",
		"Language": "en", "RegistryPrefix": "Base", "RegistryVersion": s.p.Base + ".0", "OwningEntity": "DMTF", "Messages": all}
}

func eventService(c *call) obj {
	return obj{"@odata.type": "#EventService.v1_7_0.EventService", "Id": "EventService", "Name": "Event Service",
		"ServiceEnabled": false, "Status": obj{"State": "Disabled"}, "DeliveryRetryAttempts": 3, "DeliveryRetryIntervalSeconds": 30,
		"Subscriptions": linkTo("EventService", "Subscriptions")}
}

func getSubscriptions(c *call) obj {
	return c.collection("EventDestination", "Event Subscriptions", nil)
}

// postSubscription refuses: the event service is switched off.
func postSubscription(c *call) { c.fail("EventSubscriptionLimitExceeded") }
