// Package postern is the client library for Postern: send e-mail, receive it by webhook, and give people masked addresses.
//
// A field of a record that may be absent or null is a pointer, a slice or a map; Ptr makes a pointer of a value. What this
// version does not know of a record is in its RawJSON bytes, and what it does not know of a request goes into its Extra fields,
// as does a null that clears a field.
package postern

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	mrand "math/rand"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Version of this library.
const Version = "0.1.0"

const (
	defaultTimeout = 30 * time.Second
	defaultRetries = 2
	backoff        = 500 * time.Millisecond
	backoffMax     = 8 * time.Second
	// All waits of one call together.
	waitMax = 60 * time.Second
)

// Options of a client. What is not given comes from POSTERN_API_KEY and POSTERN_BASE_URL.
type Options struct {
	APIKey string
	// BaseURL is where your Postern is; a path before /v1 is kept.
	BaseURL string
	// Timeout of each try; 30 seconds unless given.
	Timeout time.Duration
	// MaxRetries are tries after the first; 2 unless given.
	MaxRetries *int
	// Header is sent with every request.
	Header http.Header
	// HTTPClient in place of one of the package's own.
	HTTPClient *http.Client
	// Logger hears of each try. Never of keys or bodies.
	Logger func(Try)
	sleep  func(context.Context, time.Duration) error
}

// Try is one request, for a logger. Status is 0 where no answer came.
type Try struct {
	Method, Path string
	Attempt      int
	Status       int
	Err          error
	Duration     time.Duration
}

// Client has a group of methods for each kind of record. It is safe for concurrent use; keep one for the whole program.
type Client struct {
	Resources
	transport *transport
}

// String does not show the key.
func (c *Client) String() string { return "postern.Client(" + c.transport.baseURL + ")" }

// GoString does not show the key.
func (c *Client) GoString() string { return c.String() }

// New makes a client. It fails with a *PosternError where the key or the address is missing or wrong.
func New(options Options) (*Client, error) {
	made, err := newTransport(options)
	if err != nil {
		return nil, err
	}
	return &Client{Resources: bindResources(made), transport: made}, nil
}

// Request is for any operation, also one that this version does not know. Input is a body for JSON, or nil; the answer is
// decoded into answer, unless that is nil or it has no body (204, HEAD).
func (c *Client) Request(ctx context.Context, method, path string, query url.Values, input, answer any, options ...RequestOption) (*Response, error) {
	call := call{method: strings.ToUpper(method), path: path, values: query, input: input}
	return c.transport.json(ctx, call, answer, options)
}

// RequestOption is a setting of one call.
type RequestOption func(*settings)

type settings struct {
	key        *string
	timeout    time.Duration
	maxRetries int
	header     http.Header
	response   **Response
}

// WithIdempotencyKey makes repeating safe: the same key gets the stored answer. Where a call takes one and none is given,
// one is made.
func WithIdempotencyKey(key string) RequestOption { return func(s *settings) { s.key = &key } }

// WithTimeout is for each try.
func WithTimeout(timeout time.Duration) RequestOption {
	return func(s *settings) { s.timeout = timeout }
}

// WithMaxRetries are tries after the first.
func WithMaxRetries(n int) RequestOption { return func(s *settings) { s.maxRetries = n } }

// WithHeader sends a header with this request.
func WithHeader(name, value string) RequestOption {
	return func(s *settings) { s.header.Set(name, value) }
}

// WithResponse keeps status, headers, request id and rate limit of the answer.
func WithResponse(response **Response) RequestOption {
	return func(s *settings) { s.response = response }
}

// Ptr makes a pointer, for fields that may be absent.
func Ptr[T any](value T) *T { return &value }

// AttachmentFromFile is an attachment for Emails.Send from a file on the disk.
func AttachmentFromFile(path string) (SendAttachment, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return SendAttachment{}, err
	}
	return SendAttachment{Filename: filepath.Base(path), Content: base64.StdEncoding.EncodeToString(content)}, nil
}

// Transport -----------------------------------------------------------------------------------------------------------

type transport struct {
	apiKey, baseURL string
	options         Options
	client          *http.Client
	maxRetries      int
}

type call struct {
	method, path string
	// query is a struct with "query" tags, values are ready-made.
	query  any
	values url.Values
	input  any
	bytes  []byte
	// What it takes.
	accept     string
	idempotent bool
	// Its body is given on as it comes.
	isDownload bool
}

var (
	urlForm    = regexp.MustCompile(`^https?://[^/?#\s]+[^?#\s]*$`)
	headerForm = regexp.MustCompile(`^[\t\x20-\x7e]*$`)
	dotSegment = regexp.MustCompile(`(?i)^(\.|%2e){1,2}$`)
	keyForm    = regexp.MustCompile(`^[\x21-\x7e]+$`)
)

func newTransport(options Options) (*transport, error) {
	key, base := options.APIKey, options.BaseURL
	if key == "" {
		key = os.Getenv("POSTERN_API_KEY")
	}
	if base == "" {
		base = os.Getenv("POSTERN_BASE_URL")
	}
	switch {
	case key == "":
		return nil, &PosternError{"no API key: give one, or set POSTERN_API_KEY"}
	case !keyForm.MatchString(key):
		return nil, &PosternError{"the API key holds a character that no key has"}
	case !isAddress(base):
		return nil, &PosternError{"no address: give BaseURL, or set POSTERN_BASE_URL, such as https://mail.example.eu"}
	}
	made := &transport{apiKey: key, baseURL: strings.TrimRight(base, "/"), options: options, maxRetries: defaultRetries}
	if options.MaxRetries != nil {
		made.maxRetries = max(0, *options.MaxRetries)
	}
	own := http.Client{}
	if options.HTTPClient != nil {
		own = *options.HTTPClient
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	made.client = &own
	if made.options.sleep == nil {
		made.options.sleep = sleep
	}
	return made, nil
}

func isAddress(base string) bool {
	parsed, err := url.Parse(base)
	if err != nil || !urlForm.MatchString(base) {
		return false
	}
	_, err = strconv.ParseUint("0"+parsed.Port(), 10, 16)
	return err == nil
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// segment of a path (RFC 3986 §3.3).
func segment(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }

// json decodes the answer; with a name the record of that name inside it.
func (t *transport) json(ctx context.Context, call call, into any, options []RequestOption) (*Response, error) {
	call.accept = "application/json"
	var response *Response
	_, err := t.send(ctx, call, options, func(got *Response, body io.ReadCloser) ([]byte, error) {
		response = got
		content, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		if call.method == http.MethodHead || got.Status == http.StatusNoContent || got.Status == http.StatusResetContent {
			return nil, nil // without a body: into stays as it is
		}
		if !json.Valid(content) || bytes.Equal(bytes.TrimSpace(content), []byte("null")) {
			return nil, &ConnectionError{Message: fmt.Sprintf("the answer (%d) is not JSON", got.Status)}
		}
		if into == nil {
			return content, nil
		}
		return content, json.Unmarshal(content, into)
	})
	return response, err
}

func (t *transport) text(ctx context.Context, call call, options []RequestOption) (string, error) {
	content, err := t.send(ctx, call, options, func(_ *Response, body io.ReadCloser) ([]byte, error) {
		return io.ReadAll(body)
	})
	return string(content), err
}

// stream gives the body as it comes; the caller closes it.
func (t *transport) stream(ctx context.Context, call call, options []RequestOption) (io.ReadCloser, error) {
	call.isDownload = true
	var stream io.ReadCloser
	_, err := t.send(ctx, call, options, func(_ *Response, body io.ReadCloser) ([]byte, error) {
		stream = body
		return nil, nil
	})
	return stream, err
}

type reader func(*Response, io.ReadCloser) ([]byte, error)

// failure is what came of one try that did not succeed.
type failure struct {
	err             error
	worthRetrying   bool
	retryAfter      *int
	isCallerStopped bool
}

func (t *transport) send(ctx context.Context, call call, options []RequestOption, read reader) ([]byte, error) {
	given := settings{timeout: t.options.Timeout, maxRetries: t.maxRetries, header: http.Header{}}
	if given.timeout == 0 {
		given.timeout = defaultTimeout
	}
	given.timeout += longPoll(call)
	for _, set := range options {
		set(&given)
	}
	if err := checkPath(call.path); err != nil {
		return nil, err
	}
	header, err := t.headerOf(call, given)
	if err != nil {
		return nil, err
	}
	body, err := bodyOf(call)
	if err != nil {
		return nil, err
	}
	tries := 1
	if isRepeatable(call.method) || header.Get("Idempotency-Key") != "" {
		tries += given.maxRetries
	}
	waited := time.Duration(0)
	for attempt := 1; ; attempt++ {
		content, failed := t.try(ctx, call, given, attempt, header, body, read)
		if failed == nil {
			return content, nil
		}
		if failed.isCallerStopped || !failed.worthRetrying || attempt >= tries {
			return nil, failed.err
		}
		wait := backoffOf(failed, attempt)
		if waited+wait > waitMax {
			return nil, failed.err
		}
		waited += wait
		if err := t.options.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func isRepeatable(method string) bool {
	return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE"
}

// checkPath refuses ".." as an id, which would make another path of it, on the way or at the server (RFC 3986 §5.2.4).
func checkPath(path string) error {
	path, _, _ = strings.Cut(path, "?")
	for _, part := range strings.Split(path, "/") {
		if dotSegment.MatchString(part) {
			return &PosternError{"an id cannot be '.' or '..': " + path}
		}
	}
	return nil
}

func (t *transport) headerOf(call call, given settings) (http.Header, error) {
	header := http.Header{}
	for _, from := range []http.Header{t.options.Header, given.header} {
		for name, values := range from {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	header.Set("Authorization", "Bearer "+t.apiKey)
	header.Set("User-Agent", "postern-go/"+Version+" go/"+strings.TrimPrefix(runtime.Version(), "go"))
	if call.accept != "" {
		header.Set("Accept", call.accept)
	}
	if call.input != nil {
		header.Set("Content-Type", "application/json")
	} else if call.bytes != nil {
		header.Set("Content-Type", "application/octet-stream")
	}
	setIdempotencyKey(header, call, given)
	return header, checkHeader(header)
}

// setIdempotencyKey takes the option, else the header of this call, else one made for it.
func setIdempotencyKey(header http.Header, call call, given settings) {
	const name = "Idempotency-Key"
	if given.key != nil {
		header.Set(name, *given.key)
	} else if own := given.header.Values(name); call.idempotent && len(own) > 0 {
		header.Set(name, own[0])
	} else if call.idempotent {
		header.Set(name, "auto_"+uuid())
	}
}

// checkHeader: a line end would begin another header (RFC 9110 §5.5), and an empty idempotency key protects from nothing.
func checkHeader(header http.Header) error {
	for name, values := range header {
		for _, value := range values {
			if !headerForm.MatchString(value) {
				return &PosternError{"the header " + name + " may hold printable characters of ASCII only"}
			}
			if name == "Idempotency-Key" && strings.TrimSpace(value) == "" {
				return &PosternError{"the idempotency key is empty"}
			}
		}
	}
	return nil
}

func uuid() string {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		panic(err)
	}
	text := fmt.Sprintf("%x", random)
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

func bodyOf(call call) ([]byte, error) {
	if call.input == nil {
		return call.bytes, nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(call.input); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

func (t *transport) try(ctx context.Context, call call, given settings, attempt int, header http.Header, body []byte, read reader) ([]byte, *failure) {
	startedAt := time.Now()
	limited, cancel := context.WithCancel(ctx)
	limit := newTimeLimit(given.timeout, cancel)
	target := t.baseURL + call.path + queryOf(call)
	request, err := http.NewRequestWithContext(limited, call.method, target, bytes.NewReader(body))
	if err != nil {
		limit.end()
		return nil, &failure{err: &PosternError{err.Error()}}
	}
	request.Header = header.Clone()
	// Without it net/http does not repeat by itself what this package repeats.
	request.GetBody = nil
	answer, err := t.client.Do(request)
	if err != nil {
		limit.end()
		return nil, t.failed(ctx, call, limit, attempt, startedAt, err)
	}
	response := responseOf(answer)
	if given.response != nil {
		*given.response = response
	}
	t.log(call, attempt, response.Status, nil, startedAt)
	stream := &limitedBody{ReadCloser: answer.Body, limit: limit, ctx: ctx}
	if response.Status < 200 || response.Status > 299 {
		defer stream.Close()
		content, err := io.ReadAll(stream)
		if err != nil {
			return nil, t.failed(ctx, call, limit, attempt, startedAt, err)
		}
		return nil, failureOf(response, content)
	}
	if call.isDownload {
		stream.isEachPiece = true
		limit.timer.Stop()
	}
	content, err := read(response, stream)
	if call.accept != "" || content != nil || err != nil {
		stream.Close()
	}
	if err != nil {
		return nil, t.failed(ctx, call, limit, attempt, startedAt, err)
	}
	return content, nil
}

func (t *transport) failed(ctx context.Context, call call, limit *timeLimit, attempt int, startedAt time.Time, err error) *failure {
	err = brokenBy(ctx, limit, err)
	if ctx.Err() != nil {
		return &failure{err: err, isCallerStopped: true}
	}
	t.log(call, attempt, 0, err, startedAt)
	return &failure{err: err, worthRetrying: true}
}

// failureOf reads an answer that is no success. Of the statuses 500 and 503 say "later"; of 429 the others are over in hours.
func failureOf(response *Response, content []byte) *failure {
	err, fields := errorOf(response, content)
	isShort := response.Status == 429 && (fields.LimitType == "requests_per_second" || fields.LimitType == "per_minute")
	worth := isShort || response.Status == 500 || response.Status == 503
	return &failure{err: err, worthRetrying: worth, retryAfter: response.retryAfter()}
}

// backoffOf waits as the server asks; else half a second, doubled with each try, and some of it by chance so that clients spread.
func backoffOf(failed *failure, attempt int) time.Duration {
	if failed.retryAfter != nil {
		return time.Duration(*failed.retryAfter) * time.Second
	}
	most := math.Min(float64(backoffMax), float64(backoff)*math.Pow(2, float64(attempt-1)))
	return time.Duration(most * (0.75 + 0.25*mrand.Float64()))
}

func (t *transport) log(call call, attempt, status int, err error, startedAt time.Time) {
	if t.options.Logger != nil {
		t.options.Logger(Try{call.method, call.path, attempt, status, err, time.Since(startedAt)})
	}
}

// queryOf writes the fields of a query that are there.
func queryOf(call call) string {
	values := call.values
	if call.query != nil {
		values = url.Values{}
		from := reflect.ValueOf(call.query)
		for at := 0; at < from.NumField(); at++ {
			field := from.Field(at)
			if field.Kind() == reflect.Pointer {
				if field.IsNil() {
					continue
				}
				field = field.Elem()
			}
			values.Set(from.Type().Field(at).Tag.Get("query"), fmt.Sprint(field.Interface()))
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// Records -------------------------------------------------------------------------------------------------------------

// Fields are further fields of a request, by name.
type Fields map[string]any

// marshalRecord writes the fields of a record that are there, and the further ones. A nil pointer, slice or map of an optional
// field is absence; an empty one is not.
func marshalRecord(record any, extra Fields) ([]byte, error) {
	from := reflect.ValueOf(record)
	fields := map[string]any{}
	for at := 0; at < from.NumField(); at++ {
		kind := from.Type().Field(at)
		name := kind.Tag.Get("json")
		if name == "-" || !kind.IsExported() {
			continue
		}
		value := from.Field(at)
		if kind.Tag.Get("postern") == "optional" && isNil(value) {
			continue
		}
		fields[name] = value.Interface()
	}
	for name, value := range extra {
		fields[name] = value
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(fields)
	return bytes.TrimRight(out.Bytes(), "\n"), err
}

func isNil(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return value.IsNil()
	default:
		return false
	}
}
