# frozen_string_literal: true

module Postern
  # Everything that this library raises. No message ever holds the API key.
  class PosternError < StandardError; end

  # No answer came: the connection could not be made, or it broke.
  class ConnectionError < PosternError; end

  # No answer came in time.
  class TimeoutError < ConnectionError; end

  # An answer that is no success. `code` is stable and for programs, the message is for people.
  class ApiError < PosternError
    # @return [Integer]
    attr_reader :status
    # @return [String] empty where the answer was no error of the API's (a proxy's page, for example)
    attr_reader :code
    # @return [String, nil] the field at fault, such as `attachments[0].filename`
    attr_reader :field
    # @return [String, nil]
    attr_reader :request_id
    # @return [Hash, String] the whole body: a hash, or the text where it was no JSON
    attr_reader :body
    # @return [Response]
    attr_reader :response

    def initialize(message, response, body)
      super(message)
      fields = body.is_a?(Hash) ? body : {}
      @status = response.status
      @code = fields["code"].is_a?(String) ? fields["code"] : ""
      # Another server than Postern may give them another type.
      @field = fields["field"] if fields["field"].is_a?(String)
      @request_id = response.request_id || (fields["request_id"] if fields["request_id"].is_a?(String))
      @body = body
      @response = response
    end

    KINDS = {
      400 => :ValidationError, 401 => :AuthenticationError, 403 => :PermissionError, 404 => :NotFoundError,
      409 => :ConflictError, 422 => :AllSuppressedError, 429 => :RateLimitError
    }.freeze

    # The error of its kind for an answer that is no success. `body` is parsed JSON, or text.
    def self.of(response, body)
      kind = KINDS[response.status] || (response.status >= 500 ? :ServerError : :ApiError)
      Postern.const_get(kind).new(message_of(response.status, body), response, body)
    end

    # The sentence of a 429 stands in `message`: its `error` is a word for programs.
    def self.message_of(status, body)
      said = body.is_a?(Hash) ? [body["message"], body["error"]] : []
      said.find { |text| text.is_a?(String) && !text.empty? } || "the server answered #{status}"
    end
    private_class_method :message_of
  end

  # 400: the request is not right; `field` says where.
  class ValidationError < ApiError; end

  # 401: no key, or one that is not valid (any more).
  class AuthenticationError < ApiError; end

  # 403: the key, the plan or the state of the organization or domain does not allow it.
  class PermissionError < ApiError; end

  # 404.
  class NotFoundError < ApiError; end

  # 409: it exists already, or its state does not allow it.
  class ConflictError < ApiError; end

  # 422: each recipient is on a suppression list.
  class AllSuppressedError < ApiError
    # @return [Array<Hash>] each with `email` and `reason`
    def suppressed
      list = body.is_a?(Hash) ? body["suppressed"] : nil
      list.is_a?(Array) ? list : []
    end
  end

  # 429: which limit, and when to try again.
  class RateLimitError < ApiError
    def limit_type
      field_of("limit_type", String) || ""
    end

    def limit
      field_of("limit", Integer)
    end

    def used
      field_of("used", Integer)
    end

    # Seconds.
    def retry_after
      field_of("retry_after_seconds", Integer) || response.retry_after
    end

    def warming_phase
      field_of("warming_phase", String) || ""
    end

    private

    def field_of(name, type)
      value = body.is_a?(Hash) ? body[name] : nil
      value if value.is_a?(type)
    end
  end

  # 5xx.
  class ServerError < ApiError; end

  # A webhook that cannot be trusted. Answer it with 400.
  class WebhookSignatureError < PosternError
    # @return [String] missing_header, malformed_header, timestamp_too_old, timestamp_in_future, no_match,
    #   malformed_body or missing_secret
    attr_reader :reason

    def initialize(reason, message)
      super(message)
      @reason = reason
    end
  end
end
