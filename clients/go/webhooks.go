package postern

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// SignatureHeader is what VerifyWebhook wants the value of.
const SignatureHeader = "X-Service-Signature"

const (
	toleranceDefault = 300 * time.Second
	headerLengthMax  = 4096
)

// WebhookSignatureError means that a webhook cannot be trusted. Answer it with 400. Reason is one of missing_header,
// malformed_header, timestamp_too_old, timestamp_in_future, no_match, malformed_body and missing_secret.
type WebhookSignatureError struct {
	Reason  string
	Message string
}

func (e *WebhookSignatureError) Error() string { return e.Message }

// WebhookOptions of VerifyWebhook. Tolerance is 300 seconds unless given, Now is the time unless given.
type WebhookOptions struct {
	Tolerance time.Duration
	Now       time.Time
}

var (
	timeForm      = regexp.MustCompile(`^[0-9]{1,12}$`)
	signatureForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// VerifyWebhook gives the event of a webhook call, or a *WebhookSignatureError. The signature is the header
// "X-Service-Signature: t=<unix seconds>,v1=<hex>", an HMAC-SHA256 of "<t>.<body>" with the whole "whsec_…" secret; while a
// rotation lasts there are two v1. Verify the bytes as they came: JSON that was parsed and written again is another text.
func VerifyWebhook(body []byte, header string, secrets []string, options WebhookOptions) (*Event, error) {
	at, signatures, err := readSignatureHeader(header)
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		if secret != "" {
			keys = append(keys, secret)
		}
	}
	if len(keys) == 0 {
		return nil, refuse("missing_secret", "no secret was given to verify the webhook with")
	}
	if err := checkAge(at, options); err != nil {
		return nil, err
	}
	for _, key := range keys {
		wanted := []byte(signatureOf(body, key, at))
		for _, given := range signatures {
			if hmac.Equal([]byte(given), wanted) {
				return readEvent(body)
			}
		}
	}
	return nil, refuse("no_match", "no signature of the webhook matches a secret")
}

// SignWebhook makes a header for a test of your own receiver.
func SignWebhook(body []byte, secret string, at time.Time) string {
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), signatureOf(body, secret, at.Unix()))
}

func signatureOf(body []byte, secret string, at int64) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.", at)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func checkAge(at int64, options WebhookOptions) error {
	now, tolerance := options.Now, options.Tolerance
	if now.IsZero() {
		now = time.Now()
	}
	if tolerance == 0 {
		tolerance = toleranceDefault
	}
	age := now.Unix() - at
	if age > int64(tolerance.Seconds()) {
		return refuse("timestamp_too_old", fmt.Sprintf("the webhook was signed %d s ago", age))
	}
	if -age > int64(tolerance.Seconds()) {
		return refuse("timestamp_in_future", fmt.Sprintf("the webhook was signed %d s ahead of this clock", -age))
	}
	return nil
}

func readSignatureHeader(header string) (int64, []string, error) {
	if header == "" {
		return 0, nil, refuse("missing_header", "the webhook has no X-Service-Signature")
	}
	if len(header) > headerLengthMax {
		return 0, nil, refuse("malformed_header", "X-Service-Signature is too long")
	}
	var times, signatures []string
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if name == "t" {
			times = append(times, value)
		} else if name == "v1" && signatureForm.MatchString(value) {
			signatures = append(signatures, value)
		}
	}
	if len(times) != 1 || !timeForm.MatchString(times[0]) {
		return 0, nil, refuse("malformed_header", "X-Service-Signature has no one time")
	}
	if len(signatures) == 0 {
		return 0, nil, refuse("malformed_header", "X-Service-Signature has no v1 signature")
	}
	at, _ := strconv.ParseInt(times[0], 10, 64)
	return at, signatures, nil
}

func readEvent(body []byte) (*Event, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, refuse("malformed_body", "the webhook's body is not JSON")
	}
	var event Event
	if json.Unmarshal(body, &event) != nil || event.Event == "" {
		return nil, refuse("malformed_body", "the webhook's body is not an event")
	}
	return &event, nil
}

func refuse(reason, message string) error { return &WebhookSignatureError{reason, message} }
