package postern

// Plays the conformance set (clients/conformance). CONFORMANCE_URL is the recording server. Prints what failed, and one line:
// {"cases","passed","failed"}.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

const testKey = "svc_test_conformance"

type place struct {
	Resource []string `json:"resource"`
	Method   string   `json:"method"`
	Path     []string `json:"path"`
	Input    string   `json:"input"`
	Page     bool     `json:"page"`
}

type caseCall struct {
	Op          string            `json:"op"`
	Path        map[string]string `json:"path"`
	Input       json.RawMessage   `json:"input"`
	BytesBase64 string            `json:"bytes_base64"`
	Options     *struct {
		Key     *string           `json:"idempotency_key"`
		Headers map[string]string `json:"headers"`
	} `json:"options"`
	Take    int       `json:"take"`
	Twice   *caseCall `json:"twice"`
	Request *struct {
		Method, Path string
		Query        map[string]string
		JSON         json.RawMessage `json:"json"`
	} `json:"request"`
	Verify *struct {
		Body      string `json:"body_base64"`
		Header    string
		Secrets   []string
		Now       int64
		Tolerance int64
	} `json:"verify"`
}

type conformanceCase struct {
	Name    string                     `json:"name"`
	Client  map[string]json.RawMessage `json:"client"`
	Call    caseCall                   `json:"call"`
	Waits   []any                      `json:"waits"`
	Outcome map[string]any             `json:"outcome"`
}

type played struct {
	values map[string]any
	err    error
	waits  []float64
}

func TestConformance(t *testing.T) {
	url := os.Getenv("CONFORMANCE_URL")
	if url == "" {
		t.Skip("CONFORMANCE_URL is not set: npm run clients plays this")
	}
	var cases []conformanceCase
	fetch(t, url+"/cases", &cases)
	var operations map[string]place
	read, err := os.ReadFile("../conformance/operations.json")
	if err != nil || json.Unmarshal(read, &operations) != nil {
		t.Fatal("conformance/operations.json cannot be read")
	}
	runner := "go-" + strings.ReplaceAll(runtime.Version(), ".", "-")
	failed := 0
	for index, one := range cases {
		base := fmt.Sprintf("%s/case/%s/%d", url, runner, index)
		problem := check(one, play(one, operations, base))
		if problem == "" && one.Call.Verify == nil {
			var verdict struct{ Problems []string }
			fetch(t, fmt.Sprintf("%s/verdict/%s/%d", url, runner, index), &verdict)
			problem = strings.Join(verdict.Problems, "; ")
		}
		if problem != "" {
			failed++
			fmt.Printf("✖ %s: %s\n", one.Name, problem)
		}
	}
	fmt.Printf("{\"cases\":%d,\"passed\":%d,\"failed\":%d}\n", len(cases), len(cases)-failed, failed)
	if failed > 0 {
		t.Fail()
	}
}

func fetch(t *testing.T, url string, into any) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

func play(one conformanceCase, operations map[string]place, base string) played {
	if asked := one.Call.Verify; asked != nil {
		body, _ := base64.StdEncoding.DecodeString(asked.Body)
		options := WebhookOptions{Now: time.Unix(asked.Now, 0), Tolerance: time.Duration(asked.Tolerance) * time.Second}
		event, err := VerifyWebhook(body, asked.Header, asked.Secrets, options)
		if err != nil {
			return played{err: err}
		}
		return played{values: map[string]any{"event": generic(event.RawJSON())}}
	}
	result := played{values: map[string]any{}}
	client, err := clientOf(one, base, &result.waits)
	if err == nil {
		err = perform(client, one, one.Call, operations, &result)
	}
	result.err = err
	return result
}

func clientOf(one conformanceCase, base string, waits *[]float64) (*Client, error) {
	os.Unsetenv("POSTERN_API_KEY")
	os.Unsetenv("POSTERN_BASE_URL")
	options := Options{APIKey: testKey, BaseURL: base, Header: http.Header{}}
	options.sleep = func(_ context.Context, wait time.Duration) error {
		*waits = append(*waits, wait.Seconds())
		return nil
	}
	for name, raw := range one.Client {
		text := ""
		_ = json.Unmarshal(raw, &text)
		text = strings.ReplaceAll(text, "$base", base)
		switch name {
		case "api_key":
			options.APIKey = text
		case "base_url":
			options.BaseURL = text
		case "max_retries":
			var n int
			_ = json.Unmarshal(raw, &n)
			options.MaxRetries = &n
		case "timeout_ms":
			var n int64
			_ = json.Unmarshal(raw, &n)
			options.Timeout = time.Duration(n) * time.Millisecond
		default:
			var pairs map[string]string
			_ = json.Unmarshal(raw, &pairs)
			for key, value := range pairs {
				if name == "headers" {
					options.Header.Set(key, value)
				} else {
					os.Setenv(key, strings.ReplaceAll(value, "$base", base))
				}
			}
		}
	}
	return New(options)
}

func perform(client *Client, one conformanceCase, call caseCall, operations map[string]place, result *played) error {
	ctx := context.Background()
	if call.Twice != nil {
		if err := perform(client, one, *call.Twice, operations, result); err != nil {
			return err
		}
		return perform(client, one, *call.Twice, operations, result)
	}
	if asked := call.Request; asked != nil {
		query := map[string][]string{}
		for name, value := range asked.Query {
			query[name] = []string{value}
		}
		var input any
		if asked.JSON != nil {
			input = asked.JSON
		}
		var answer json.RawMessage
		_, err := client.Request(ctx, asked.Method, asked.Path, query, input, &answer)
		result.values["return"] = generic(answer)
		return err
	}
	at := operations[call.Op]
	target := reflect.ValueOf(client).Elem()
	for _, name := range at.Resource {
		target = reflect.Indirect(target.FieldByName(goName(name)))
	}
	method := target.Addr().MethodByName(goName(at.Method))
	values := []reflect.Value{reflect.ValueOf(ctx)}
	for _, name := range at.Path {
		values = append(values, reflect.ValueOf(call.Path[name]))
	}
	switch at.Input {
	case "bytes":
		content, _ := base64.StdEncoding.DecodeString(call.BytesBase64)
		values = append(values, reflect.ValueOf(content))
	case "json", "query":
		values = append(values, inputOf(method.Type().In(len(values)), at.Input, call.Input))
	}
	if call.Options != nil {
		if call.Options.Key != nil {
			values = append(values, reflect.ValueOf(WithIdempotencyKey(*call.Options.Key)))
		}
		for name, value := range call.Options.Headers {
			values = append(values, reflect.ValueOf(WithHeader(name, value)))
		}
	}
	var response *Response
	values = append(values, reflect.ValueOf(WithResponse(&response)))
	out := method.Call(values)
	if err, _ := out[1].Interface().(error); err != nil {
		return err
	}
	return keep(ctx, one, call, out[0], response, result)
}

// goName is how clients/generate/go.ts writes it.
func goName(name string) string {
	text := ""
	for _, part := range strings.Split(name, "_") {
		text += strings.ToUpper(part[:1]) + part[1:]
	}
	for _, word := range []string{"Dns", "Dkim", "Dmarc", "Ip", "Api"} {
		if text == word || strings.HasPrefix(text, word) && text[len(word)] >= 'A' && text[len(word)] <= 'Z' {
			text = strings.ToUpper(word) + text[len(word):]
		}
	}
	if text == "Isps" {
		return "ISPs"
	}
	return text
}

func inputOf(kind reflect.Type, form string, given json.RawMessage) reflect.Value {
	input := reflect.New(kind)
	if given == nil {
		return input.Elem()
	}
	if form == "json" {
		if err := json.Unmarshal(given, input.Interface()); err != nil {
			panic(err)
		}
		var fields map[string]any
		if _ = json.Unmarshal(given, &fields); kind.Kind() == reflect.Struct {
			extra := Fields{}
			for name, value := range fields {
				if value == nil {
					extra[name] = nil
				}
			}
			input.Elem().FieldByName("Extra").Set(reflect.ValueOf(extra))
		}
		return input.Elem()
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(given, &fields)
	for at := 0; at < kind.NumField(); at++ {
		if raw, ok := fields[kind.Field(at).Tag.Get("query")]; ok {
			if err := json.Unmarshal(raw, input.Elem().Field(at).Addr().Interface()); err != nil {
				panic(err)
			}
		}
	}
	return input.Elem()
}

func keep(ctx context.Context, one conformanceCase, call caseCall, value reflect.Value, response *Response, result *played) error {
	switch got := value.Interface().(type) {
	case string:
		result.values["return"] = got
	case io.ReadCloser:
		content, err := io.ReadAll(got)
		result.values["return_base64"] = base64.StdEncoding.EncodeToString(content)
		_ = got.Close()
		return err
	case interface{ RawJSON() json.RawMessage }:
		result.values["return"] = generic(got.RawJSON())
	default:
		if value.Elem().Kind() == reflect.Struct && value.Elem().FieldByName("Items").IsValid() {
			return keepPage(ctx, one, call, value, result)
		}
		text, _ := json.Marshal(got)
		result.values["return"] = generic(text)
	}
	text, _ := json.Marshal(response.RateLimit)
	id := any(nil)
	if response.RequestID != "" {
		id = response.RequestID
	}
	result.values["response"] = map[string]any{"status": float64(response.Status), "request_id": id, "rate_limit": generic(text)}
	return nil
}

func keepPage(ctx context.Context, one conformanceCase, call caseCall, page reflect.Value, result *played) error {
	if _, ok := one.Outcome["page"]; ok {
		fields := page.Elem()
		items := []any{}
		for at := 0; at < fields.FieldByName("Items").Len(); at++ {
			items = append(items, rawOf(fields.FieldByName("Items").Index(at)))
		}
		result.values["page"] = map[string]any{"items": items, "total": float64(fields.FieldByName("Total").Int()), "has_more": fields.FieldByName("HasMore").Bool()}
		return nil
	}
	walk := page.MethodByName("Iterator").Call(nil)[0]
	items := []any{}
	for walk.MethodByName("Next").Call([]reflect.Value{reflect.ValueOf(ctx)})[0].Bool() {
		items = append(items, rawOf(walk.MethodByName("Item").Call(nil)[0]))
		if len(items) == call.Take {
			break
		}
	}
	result.values["items"] = items
	err, _ := walk.MethodByName("Err").Call(nil)[0].Interface().(error)
	return err
}

func rawOf(item reflect.Value) any {
	addressable := reflect.New(item.Type())
	addressable.Elem().Set(item)
	if record, ok := addressable.Interface().(interface{ RawJSON() json.RawMessage }); ok {
		return generic(record.RawJSON())
	}
	text, _ := json.Marshal(item.Interface())
	return generic(text)
}

func generic(text json.RawMessage) any {
	var value any
	_ = json.Unmarshal(text, &value)
	return value
}

func check(one conformanceCase, got played) string {
	if raise, ok := one.Outcome["raise"].(map[string]any); ok {
		if problem := checkRaised(raise, got.err); problem != "" {
			return problem
		}
	} else if got.err != nil {
		return fmt.Sprintf("%T %v", got.err, got.err)
	} else {
		for name, value := range one.Outcome {
			if !reflect.DeepEqual(got.values[name], value) {
				return fmt.Sprintf("%s is %v, not %v", name, got.values[name], value)
			}
		}
	}
	if one.Waits == nil {
		return ""
	}
	if len(got.waits) != len(one.Waits) {
		return fmt.Sprintf("waits %v", got.waits)
	}
	for at, wanted := range one.Waits {
		wait := got.waits[at]
		if seconds, isNumber := wanted.(float64); isNumber && wait != seconds || !isNumber && (wait <= 0 || wait > 8) {
			return fmt.Sprintf("waits %v", got.waits)
		}
	}
	return ""
}

func checkRaised(wanted map[string]any, err error) string {
	if err == nil {
		return "nothing was raised"
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), testKey) {
		return "the error shows the key"
	}
	kind := strings.Replace(wanted["class"].(string), "ApiError", "APIError", 1)
	if fmt.Sprintf("%T", err) != "*postern."+kind {
		return fmt.Sprintf("%T %v", err, err)
	}
	var base *APIError
	errors.As(err, &base)
	for name, value := range wanted {
		found := any(nil)
		switch name {
		case "class":
			continue
		case "reason":
			found = err.(*WebhookSignatureError).Reason
		case "status":
			found = float64(base.Status)
		case "body":
			found = string(base.Body)
		case "suppressed":
			text, _ := json.Marshal(err.(*AllSuppressedError).Suppressed)
			found = generic(text)
		default:
			field := reflect.ValueOf(err).Elem().FieldByName(strings.Replace(pascal(name), "RequestId", "RequestID", 1))
			if found = field.Interface(); field.CanInt() {
				found = float64(field.Int())
			}
		}
		if found == "" && value == nil {
			continue
		}
		if !reflect.DeepEqual(found, value) {
			return fmt.Sprintf("%s is %v, not %v", name, found, value)
		}
	}
	return ""
}

func pascal(name string) string {
	text := ""
	for _, part := range strings.Split(name, "_") {
		text += strings.ToUpper(part[:1]) + part[1:]
	}
	return text
}
