package postern

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Everything that this package returns as an error is a *PosternError, or embeds one of these kinds; errors.As tells them
// apart. No message ever holds the API key.

// PosternError is wrong use: no key, no address.
type PosternError struct{ Message string }

func (e *PosternError) Error() string { return e.Message }

// ConnectionError means that no answer came: the connection could not be made, or it broke.
type ConnectionError struct {
	Message string
	Cause   error
}

func (e *ConnectionError) Error() string { return e.Message }
func (e *ConnectionError) Unwrap() error { return e.Cause }

// TimeoutError means that no answer came in time. It unwraps to a ConnectionError.
type TimeoutError struct{ ConnectionError }

func (e *TimeoutError) Unwrap() error { return &e.ConnectionError }

// RateLimit of the present second: how many requests there may be, and how many are left. Reset is in seconds.
type RateLimit struct {
	Limit     int  `json:"limit"`
	Remaining int  `json:"remaining"`
	Reset     *int `json:"reset"`
}

// Response is what is known of an answer besides its body.
type Response struct {
	Status    int
	Header    http.Header
	RequestID string
	// RateLimit is nil where the answer does not say it.
	RateLimit *RateLimit
}

func responseOf(answer *http.Response) *Response {
	found := &Response{Status: answer.StatusCode, Header: answer.Header, RequestID: answer.Header.Get("X-Request-ID")}
	limit, remaining := number(answer.Header, "ratelimit-limit"), number(answer.Header, "ratelimit-remaining")
	if limit != nil && remaining != nil {
		found.RateLimit = &RateLimit{*limit, *remaining, number(answer.Header, "ratelimit-reset")}
	}
	return found
}

// numberMax keeps a number of seconds within a time.Duration.
const numberMax = 1 << 30

var numberForm = regexp.MustCompile(`^[0-9]+$`)

// retryAfter is in seconds (RFC 9110 §10.2.3): the server writes them, a proxy before it may write a date.
func (r *Response) retryAfter() *int {
	at, err := http.ParseTime(strings.TrimSpace(r.Header.Get("retry-after")))
	if err != nil {
		return number(r.Header, "retry-after")
	}
	seconds := int(min(max(0, math.Ceil(time.Until(at).Seconds())), numberMax))
	return &seconds
}

func number(header http.Header, name string) *int {
	text := strings.TrimSpace(header.Get(name))
	if !numberForm.MatchString(text) {
		return nil
	}
	value, err := strconv.Atoi(text)
	if err != nil || value > numberMax {
		value = numberMax
	}
	return &value
}

// APIError is an answer that is no success. Code is stable and for programs, Message is for people.
type APIError struct {
	Message string
	Status  int
	// Code is empty where the answer was no error of the API's (a proxy's page, for example).
	Code string
	// Field is at fault, such as attachments[0].filename; empty where no one field is.
	Field     string
	RequestID string
	// Body is the whole body.
	Body     []byte
	Response *Response
}

func (e *APIError) Error() string { return fmt.Sprintf("%s (%d %s)", e.Message, e.Status, e.Code) }

// ValidationError is 400: the request is not right; Field says where.
type ValidationError struct{ *APIError }

// AuthenticationError is 401: no key, or one that is not valid (any more).
type AuthenticationError struct{ *APIError }

// PermissionError is 403: the key, the plan or the state of the organization or domain does not allow it.
type PermissionError struct{ *APIError }

// NotFoundError is 404.
type NotFoundError struct{ *APIError }

// ConflictError is 409: it exists already, or its state does not allow it.
type ConflictError struct{ *APIError }

// AllSuppressedError is 422: each recipient is on a suppression list.
type AllSuppressedError struct {
	*APIError
	Suppressed []SuppressedRecipient
}

// RateLimitError is 429: which limit, and when to try again. RetryAfter is in seconds.
type RateLimitError struct {
	*APIError
	LimitType    string
	Limit        int64
	Used         int64
	RetryAfter   int64
	WarmingPhase string
}

// ServerError is 5xx.
type ServerError struct{ *APIError }

func (e *ValidationError) Unwrap() error     { return e.APIError }
func (e *AuthenticationError) Unwrap() error { return e.APIError }
func (e *PermissionError) Unwrap() error     { return e.APIError }
func (e *NotFoundError) Unwrap() error       { return e.APIError }
func (e *ConflictError) Unwrap() error       { return e.APIError }
func (e *AllSuppressedError) Unwrap() error  { return e.APIError }
func (e *RateLimitError) Unwrap() error      { return e.APIError }
func (e *ServerError) Unwrap() error         { return e.APIError }

type errorBody struct {
	Error        string                `json:"error"`
	Message      string                `json:"message"`
	Code         string                `json:"code"`
	Field        string                `json:"field"`
	RequestID    string                `json:"request_id"`
	Suppressed   []SuppressedRecipient `json:"suppressed"`
	LimitType    string                `json:"limit_type"`
	Limit        int64                 `json:"limit"`
	Used         int64                 `json:"used"`
	RetryAfter   int64                 `json:"retry_after_seconds"`
	WarmingPhase string                `json:"warming_phase"`
}

// errorBodyOf leaves out what another server than Postern gave another type.
func errorBodyOf(body []byte) errorBody {
	var fields errorBody
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(body, &fields); err != nil && !errors.As(err, &wrong) {
		return errorBody{}
	}
	return fields
}

// lacks is the error for an answer without what was asked for: it did not come from Postern.
func lacks(name string) error {
	return &ConnectionError{Message: "the answer has no '" + name + "'"}
}

// errorOf gives the error of its kind for an answer that is no success.
func errorOf(response *Response, body []byte) (error, errorBody) {
	fields := errorBodyOf(body)
	base := &APIError{Message: messageOf(response.Status, fields), Status: response.Status, Code: fields.Code, Field: fields.Field, RequestID: response.RequestID, Body: body, Response: response}
	if base.RequestID == "" {
		base.RequestID = fields.RequestID
	}
	switch {
	case response.Status == 400:
		return &ValidationError{base}, fields
	case response.Status == 401:
		return &AuthenticationError{base}, fields
	case response.Status == 403:
		return &PermissionError{base}, fields
	case response.Status == 404:
		return &NotFoundError{base}, fields
	case response.Status == 409:
		return &ConflictError{base}, fields
	case response.Status == 422:
		return &AllSuppressedError{base, fields.Suppressed}, fields
	case response.Status == 429:
		return rateLimitError(base, fields), fields
	case response.Status >= 500:
		return &ServerError{base}, fields
	default:
		return base, fields
	}
}

func rateLimitError(base *APIError, fields errorBody) error {
	after := fields.RetryAfter
	if seconds := base.Response.retryAfter(); after == 0 && seconds != nil {
		after = int64(*seconds)
	}
	return &RateLimitError{base, fields.LimitType, fields.Limit, fields.Used, after, fields.WarmingPhase}
}

// messageOf: of a 429 "error" is a word for programs; the sentence stands in "message".
func messageOf(status int, fields errorBody) string {
	for _, said := range []string{fields.Message, fields.Error} {
		if said != "" {
			return said
		}
	}
	return fmt.Sprintf("the server answered %d", status)
}
