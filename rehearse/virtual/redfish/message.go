// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"
	"net/http"
	"strings"
)

// message is one entry of the Base message registry (DSP8011).
type message struct {
	id, text, severity, resolution string
	params                         int
	status                         int // HTTP status it usually comes with
}

// messages are the entries of the Base registry that this service uses.
var messages = []message{
	{"Success", "The request completed successfully.", "OK", "None.", 0, http.StatusOK},
	{"GeneralError", "A general error has occurred. See Resolution for information on how to resolve the error.", "Critical", "See vendor specific instructions for specific actions.", 0, http.StatusInternalServerError},
	{"InternalError", "The request failed due to an internal service error. The service is still operational.", "Critical", "Resubmit the request.", 0, http.StatusInternalServerError},
	{"ResourceNotFound", "The requested resource of type %1 named '%2' was not found.", "Critical", "Provide a valid resource identifier and resubmit the request.", 2, http.StatusNotFound},
	{"OperationNotAllowed", "The HTTP method is not allowed on this resource.", "Critical", "None.", 0, http.StatusMethodNotAllowed},
	{"NoValidSession", "There is no valid session established with the implementation.", "Critical", "Establish a session before attempting any operations.", 0, http.StatusUnauthorized},
	{"ResourceAtUriUnauthorized", "While accessing the resource at '%1', the service received an authorization error '%2'.", "Critical", "Ensure that the appropriate access is provided for the service in order for it to access the URI.", 2, http.StatusUnauthorized},
	{"InsufficientPrivilege", "There are insufficient privileges for the account or credentials associated with the current session to perform the requested operation.", "Critical", "Either abandon the operation or change the associated access rights and resubmit the request if the operation failed.", 0, http.StatusForbidden},
	{"PropertyUnknown", "The property %1 is not in the list of valid properties for the resource.", "Warning", "Remove the unknown property from the request body and resubmit the request if the operation failed.", 1, http.StatusBadRequest},
	{"PropertyMissing", "The property %1 is a required property and must be included in the request.", "Warning", "Ensure that the property is in the request body and has a valid value and resubmit the request if the operation failed.", 1, http.StatusBadRequest},
	{"PropertyNotWritable", "The property %1 is a read only property and cannot be assigned a value.", "Warning", "Remove the property from the request body and resubmit the request if the operation failed.", 1, http.StatusBadRequest},
	{"PropertyValueTypeError", "The value '%1' for the property %2 is of a different type than the property can accept.", "Warning", "Correct the value for the property in the request body and resubmit the request if the operation failed.", 2, http.StatusBadRequest},
	{"PropertyValueNotInList", "The value '%1' for the property %2 is not in the list of acceptable values.", "Warning", "Choose a value from the enumeration list that the implementation can support and resubmit the request if the operation failed.", 2, http.StatusBadRequest},
	{"PropertyValueFormatError", "The value '%1' for the property %2 is of a different format than the property can accept.", "Warning", "Correct the value for the property in the request body and resubmit the request if the operation failed.", 2, http.StatusBadRequest},
	{"ActionParameterMissing", "The action %1 requires the parameter %2 to be present in the request body.", "Critical", "Supply the action with the required parameter in the request body when the request is resubmitted.", 2, http.StatusBadRequest},
	{"ActionParameterNotSupported", "The parameter %1 for the action %2 is not supported on the target resource.", "Warning", "Remove the parameter supplied and resubmit the request if the operation failed.", 2, http.StatusBadRequest},
	{"ActionParameterValueNotInList", "The value '%1' for the parameter %2 in the action %3 is not in the list of acceptable values.", "Warning", "Choose a value from the list of acceptable values and resubmit the request if the operation failed.", 3, http.StatusBadRequest},
	{"ActionParameterValueConflict", "The parameter '%1' with the requested value of '%2' does not meet the constraints of the implementation.", "Warning", "Change the value of the provided parameter and resubmit the request.", 2, http.StatusConflict},
	{"MalformedJSON", "The request body submitted was malformed JSON and could not be parsed by the receiving service.", "Critical", "Ensure that the request body is valid JSON and resubmit the request.", 0, http.StatusBadRequest},
	{"SessionLimitExceeded", "The session establishment failed due to the number of simultaneous sessions exceeding the limit of the implementation.", "Critical", "Reduce the number of other sessions before trying to establish the session or increase the limit of simultaneous sessions, if supported.", 0, http.StatusServiceUnavailable},
	{"ServiceTemporarilyUnavailable", "The service is temporarily unavailable. Retry in %1 seconds.", "Critical", "Wait for the indicated retry duration and retry the operation.", 1, http.StatusServiceUnavailable},
	{"ResourceInUse", "The change to the requested resource failed because the resource is in use or in transition.", "Warning", "Remove the condition and resubmit the request if the operation failed.", 0, http.StatusServiceUnavailable},
	{"ResourceAlreadyExists", "The requested resource of type %1 with the property %2 with the value '%3' already exists.", "Critical", "Do not repeat the create operation as the resource has already been created.", 3, http.StatusBadRequest},
	{"CreateLimitReachedForResource", "The create operation failed because the resource has reached the limit of possible resources.", "Critical", "Either delete resources and resubmit the request if the operation failed or do not resubmit the request.", 0, http.StatusBadRequest},
	{"EventSubscriptionLimitExceeded", "The event subscription failed due to the number of simultaneous subscriptions exceeding the limit of the implementation.", "Critical", "Reduce the number of other subscriptions before trying to establish the event subscription or increase the limit of simultaneous subscriptions, if supported.", 0, http.StatusServiceUnavailable},
	{"PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.", "Critical", "Try the operation again using the appropriate ETag.", 0, http.StatusPreconditionFailed},
	{"PreconditionRequired", "A precondition header or annotation is required to change this resource.", "Critical", "Try the operation again using an If-Match or If-None-Match header and appropriate ETag.", 0, http.StatusPreconditionRequired},
}

func findMessage(id string) message {
	for _, m := range messages {
		if m.id == id {
			return m
		}
	}
	return messages[1]
}

// info renders a message as an entry of @Message.ExtendedInfo.
func (s *server) info(m message, args ...string) obj {
	text := m.text
	for i, a := range args {
		text = strings.ReplaceAll(text, fmt.Sprintf("%%%d", i+1), a)
	}
	id := m.id
	if !strings.Contains(id, ".") {
		id = "Base." + s.p.Base + "." + id
	}
	if args == nil {
		args = []string{}
	}
	return obj{"@odata.type": "#Message.v1_1_1.Message", "MessageId": id, "Message": text, "MessageArgs": args,
		"Severity": m.severity, "MessageSeverity": m.severity, "Resolution": m.resolution}
}

// fail answers with a message of the Base registry and its usual status.
func (c *call) fail(id string, args ...string) {
	m := findMessage(id)
	c.error(m.status, c.s.info(m, args...))
}

// failWith is fail with a status of the maker's own.
func (c *call) failWith(status int, id string, args ...string) {
	c.error(status, c.s.info(findMessage(id), args...))
}

// failOwn answers with a message of the maker's own registry.
func (c *call) failOwn(status int, id, text string) {
	c.error(status, c.s.info(message{id: id, text: text, severity: "Critical", resolution: "None."}))
}

func (c *call) error(status int, info obj) {
	c.failed = true
	c.send(status, obj{"error": obj{"code": "Base." + c.s.p.Base + ".GeneralError",
		"message":               "A general error has occurred. See ExtendedInfo for more information.",
		"@Message.ExtendedInfo": []obj{info}}})
}

// done answers a change that needs no body of its own.
func (c *call) done(status int) {
	if status == http.StatusNoContent {
		c.w.WriteHeader(status)
		return
	}
	c.send(status, obj{"@Message.ExtendedInfo": []obj{c.s.info(findMessage("Success"))}})
}
