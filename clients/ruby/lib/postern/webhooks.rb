# frozen_string_literal: true

require "json"
require "openssl"

module Postern
  # Webhooks: whether a call came from your Postern, and which event it brings. The signature is the header
  # `X-Service-Signature: t=<unix seconds>,v1=<hex>`, an HMAC-SHA256 of `<t>.<body>` with the whole `whsec_…` secret;
  # while a rotation lasts there are two `v1`. Verify the bytes as they came: JSON that was parsed and written again is
  # another text. (Rack: `request.body.read` and `request.env["HTTP_X_SERVICE_SIGNATURE"]`.)
  module Webhooks
    TOLERANCE_S = 300
    HEADER_LENGTH_MAX = 4096

    module_function

    # @param secrets [String, nil, Array<String, nil>] one that is nil is passed over
    # @param now [Integer] Unix seconds
    # @return [Record] the event
    # @raise [WebhookSignatureError] with its `reason`
    def verify(body, header, secrets, tolerance: TOLERANCE_S, now: Time.now.to_i)
      time, signatures = read_header(header)
      keys = Array(secrets).reject { |secret| secret.nil? || secret.empty? }
      refuse("missing_secret", "no secret was given to verify the webhook with") if keys.empty?
      check_age(now - time, tolerance)
      signed = keys.any? do |key|
        wanted = signature(body, key, time)
        signatures.any? { |given| OpenSSL.fixed_length_secure_compare(given, wanted) }
      end
      refuse("no_match", "no signature of the webhook matches a secret") unless signed
      read_event(body)
    end

    # A header for a test of your own receiver.
    def sign(body, secret, time = Time.now.to_i)
      "t=#{time},v1=#{signature(body, secret, time)}"
    end

    def signature(body, secret, time)
      OpenSSL::HMAC.hexdigest("SHA256", secret, "#{time}.".b + body.b)
    end

    def check_age(age, tolerance)
      refuse("timestamp_too_old", "the webhook was signed #{age} s ago") if age > tolerance
      refuse("timestamp_in_future", "the webhook was signed #{-age} s ahead of this clock") if -age > tolerance
    end

    def read_header(header)
      refuse("missing_header", "the webhook has no X-Service-Signature") if header.nil? || header.empty?
      refuse("malformed_header", "X-Service-Signature is too long") if header.length > HEADER_LENGTH_MAX
      fields = header.b.split(",").map { |part| part.strip.split("=", 2) }
      times = fields.filter_map { |name, value| value.to_s if name == "t" }
      one_time = times.length == 1 && times.first.match?(/\A[0-9]{1,12}\z/)
      refuse("malformed_header", "X-Service-Signature has no one time") unless one_time
      signatures = fields.filter_map { |name, value| value if name == "v1" && value.to_s.match?(/\A[0-9a-f]{64}\z/) }
      refuse("malformed_header", "X-Service-Signature has no v1 signature") if signatures.empty?
      [times.first.to_i, signatures]
    end

    def read_event(body)
      text = body.dup.force_encoding(Encoding::UTF_8)
      refuse("malformed_body", "the webhook's body is not JSON") unless text.valid_encoding?
      event = JSON.parse(text)
      known = event.is_a?(Hash) && event["event"].is_a?(String)
      known ? Record.of(event) : refuse("malformed_body", "the webhook's body is not an event")
    rescue JSON::ParserError
      refuse("malformed_body", "the webhook's body is not JSON")
    end

    def refuse(reason, message)
      raise WebhookSignatureError.new(reason, message)
    end

    private_class_method :signature, :check_age, :read_header, :read_event, :refuse
  end
end
