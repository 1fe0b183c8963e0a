# frozen_string_literal: true

require "json"
require "net/http"
require "openssl"
require "securerandom"
require "time"
require "uri"

module Postern
  # One request and its repetitions: URL, headers, body, time limit, what is worth another try and when.
  class Transport
    TIMEOUT_S = 30
    RETRIES = 2
    BACKOFF_S = 0.5
    BACKOFF_S_MAX = 8.0
    # All waits of one call together.
    WAIT_S_MAX = 60
    # Statuses that say "later", not "no".
    WORTH_RETRYING = [500, 503].freeze
    WITHOUT_BODY = [204, 205].freeze
    # The limits of a 429 that are over soon; the others last for hours.
    SHORT_LIMITS = %w[requests_per_second per_minute].freeze
    REPEATABLE = %w[GET HEAD PUT DELETE].freeze
    REQUESTS = {
      "GET" => Net::HTTP::Get, "POST" => Net::HTTP::Post, "PUT" => Net::HTTP::Put,
      "PATCH" => Net::HTTP::Patch, "DELETE" => Net::HTTP::Delete, "HEAD" => Net::HTTP::Head
    }.freeze
    BROKEN = [SystemCallError, IOError, SocketError, OpenSSL::SSL::SSLError, Net::ProtocolError,
              Net::HTTPBadResponse, Zlib::Error].freeze

    NO_ADDRESS = "no address: give base_url, or set POSTERN_BASE_URL, such as https://mail.example.eu"
    PORT_MAX = 65_535

    Failure = Struct.new(:error, :worth_retrying, :retry_after)

    # Raises a PosternError where the key or the URL is missing or wrong.
    def initialize(api_key: nil, base_url: nil, timeout: TIMEOUT_S, max_retries: RETRIES, headers: {}, logger: nil,
                   sleeper: nil)
      @api_key = key_of(api_key || ENV.fetch("POSTERN_API_KEY", ""))
      @base_url = url_of(base_url || ENV.fetch("POSTERN_BASE_URL", ""))
      @timeout = timeout
      @max_retries = max_retries
      @headers = headers
      @logger = logger
      @sleeper = sleeper || ->(seconds) { sleep(seconds) }
    end

    # Without the key.
    def inspect
      "#<#{self.class} #{@base_url}>"
    end

    # A segment of a path (RFC 3986 §3.3).
    def self.segment(value)
      URI.encode_www_form_component(value.to_s).gsub("+", "%20")
    end

    # @param answer [Symbol] :json, :text or :bytes; with a block the bytes come piece by piece
    # @param idempotent [Boolean] whether it takes an Idempotency-Key
    def request(method, path, query: {}, json: nil, bytes: nil, answer: :json, idempotent: false, options: {}, &block)
      # What the server was asked to wait before it answers (GET /v1/events).
      wait = query[:wait].is_a?(Numeric) ? query[:wait] : 0
      call = { method: method, path: path, answer: answer, uri: uri_of(path, query), timeout: @timeout + wait }
      headers = headers_of(method, answer, options, json: !json.nil?, bytes: !bytes.nil?, idempotent: idempotent)
      body = json.nil? ? bytes : JSON.generate(plain(json))
      repeat(call, headers, options) { |attempt| try_once(call.merge(attempt: attempt), headers, body, options, &block) }
    end

    private

    def key_of(key)
      raise PosternError, "no API key: give one, or set POSTERN_API_KEY" if key.empty?
      raise PosternError, "the API key holds a character that no key has" if key.match?(/[^\x21-\x7e]/)

      key
    end

    def url_of(url)
      return url.sub(%r{/+\z}, "") if url.match?(%r{\Ahttps?://[^/?#]+[^?#]*\z}) && (URI(url).port || 0) <= PORT_MAX

      raise PosternError, NO_ADDRESS
    rescue URI::InvalidURIError
      raise PosternError, NO_ADDRESS
    end

    def uri_of(path, query)
      check_path(path)
      pairs = query.compact.map { |name, value| [name.to_s, text_of(value)] }
      URI(@base_url + path + (pairs.empty? ? "" : "?#{URI.encode_www_form(pairs)}"))
    rescue URI::InvalidURIError
      raise PosternError, "the address cannot be asked: #{path}"
    end

    # `..` as an id would make another path of it, on the way or at the server (RFC 3986 §5.2.4).
    def check_path(path)
      return if path.split(/[?#]/, 2).first.split("/").none? { |part| part.match?(/\A(\.|%2e){1,2}\z/i) }

      raise PosternError, "an id cannot be '.' or '..': #{path}"
    end

    def text_of(value)
      value.respond_to?(:iso8601) ? plain(value) : value.to_s
    end

    # Times as RFC 3339.
    def plain(value)
      case value
      when Hash then value.transform_values { |inner| plain(inner) }
      when Array then value.map { |inner| plain(inner) }
      when Time then value.getutc.iso8601(3)
      else value
      end
    end

    def headers_of(method, answer, options, json:, bytes:, idempotent:)
      of_call = checked_headers(options[:headers] || {})
      given = checked_headers(@headers).merge(of_call)
      given["authorization"] = "Bearer #{@api_key}"
      given["user-agent"] = "postern-ruby/#{VERSION} ruby/#{RUBY_VERSION}"
      given["accept"] = "application/json" if answer == :json
      given["content-type"] = "application/json" if json || method == "POST"
      given["content-type"] = "application/octet-stream" if bytes
      given["idempotency-key"] = idempotency_key_of(options[:idempotency_key], of_call) if idempotent
      given
    end

    # The option, else the header of this call, else one made for it. An empty one would protect from nothing.
    def idempotency_key_of(given, headers)
      key = given || headers["idempotency-key"] || "auto_#{SecureRandom.uuid}"
      raise PosternError, "the idempotency key is empty" if checked_header("Idempotency-Key", key).strip.empty?

      key.to_s
    end

    def checked_headers(given)
      given.to_h { |name, value| [name.to_s.downcase, checked_header(name, value)] }
    end

    # A line end would begin another header (RFC 9110 §5.5).
    def checked_header(name, value)
      return value.to_s unless value.to_s.b.match?(/[^\t\x20-\x7e]/n)

      raise PosternError, "the header #{name} may hold printable characters of ASCII only"
    end

    def repeat(call, headers, options)
      repeatable = REPEATABLE.include?(call[:method]) || headers.key?("idempotency-key")
      tries = repeatable ? 1 + [0, options[:max_retries] || @max_retries].max : 1
      waited = 0
      (1..).each do |attempt|
        outcome = yield(attempt)
        return outcome unless outcome.is_a?(Failure)

        wait = outcome.worth_retrying && attempt < tries ? backoff(outcome, attempt) : nil
        raise outcome.error if wait.nil? || waited + wait > WAIT_S_MAX

        waited += wait
        @sleeper.call(wait)
      end
    end

    # As the server asks; else half a second, doubled with each try, and some of it by chance so that clients spread.
    def backoff(failure, attempt)
      return failure.retry_after if failure.retry_after

      [BACKOFF_S_MAX, BACKOFF_S * (2**(attempt - 1))].min * (0.75 + (0.25 * rand))
    end

    def try_once(call, headers, body, options, &block)
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      timeout = options[:timeout] || call[:timeout]
      call[:until] = started + timeout
      outcome = connect(call[:uri], timeout) do |http|
        request = REQUESTS.fetch(call[:method]).new(call[:uri], headers)
        request.body = body if body
        exchange(http, request, call, &block)
      end
      log(call, started, outcome)
      outcome
    rescue Net::OpenTimeout, Net::ReadTimeout, Net::WriteTimeout
      failed(call, started, TimeoutError.new("no answer within #{timeout} s"))
    rescue *BROKEN => e
      raise if e.equal?(call[:of_block])

      failed(call, started, ConnectionError.new("the connection failed: #{e.message}"))
    end

    def connect(uri, timeout, &block)
      http = Net::HTTP.new(uri.host, uri.port)
      http.use_ssl = uri.scheme == "https"
      http.open_timeout = http.read_timeout = http.write_timeout = timeout
      http.max_retries = 0
      http.start(&block)
    end

    def exchange(http, request, call, &block)
      outcome = nil
      http.request(request) do |response|
        meta = Response.new(response.code.to_i, response.to_hash.transform_values { |values| values.join(", ") })
        outcome = read_answer(response, meta, call, &block)
      end
      outcome
    end

    # Of a success without a body nil.
    def read_answer(response, meta, call, &block)
      return failure_of(meta, whole(response, call)) unless (200..299).cover?(meta.status)

      case call[:answer]
      when :bytes then block ? hand_over(response, call, &block) : whole(response, call)
      when :text then whole(response, call).force_encoding(Encoding::UTF_8)
      else call[:method] == "HEAD" || WITHOUT_BODY.include?(meta.status) ? nil : record_of(meta, whole(response, call))
      end
    end

    # Net::HTTP limits each read; an answer that comes in drops would have time without end. A download's pieces have it.
    def whole(response, call)
      text = "".b
      pieces_of(response, call) do |piece|
        raise Net::ReadTimeout if call[:answer] != :bytes && Process.clock_gettime(Process::CLOCK_MONOTONIC) > call[:until]

        text << piece
      end
      text
    end

    # What was begun is not repeated, so that no piece comes twice; what the block raises is the caller's.
    def hand_over(response, call)
      pieces_of(response, call) do |piece|
        call[:begun] = true
        yield piece
      rescue StandardError => e
        call[:of_block] = e
        raise
      end
      nil
    end

    # Net::HTTP takes a connection that breaks for the end of the body (RFC 9112 §8).
    def pieces_of(response, call)
      wanted = call[:method] == "HEAD" || response["content-encoding"] ? nil : response["content-length"]
      got = 0
      response.read_body do |piece|
        got += piece.bytesize
        yield piece
      end
      raise EOFError, "#{got} bytes of #{wanted} came" if wanted && got < wanted.to_i
    end

    # A success whose body is not JSON did not come from Postern, or not whole.
    def record_of(meta, text)
      value = parse(text)
      return Record.of(value, meta) if value.is_a?(Hash)

      Failure.new(ConnectionError.new("the answer (#{meta.status}) is not JSON"), true, nil)
    end

    def failure_of(meta, text)
      text = text.dup.force_encoding(Encoding::UTF_8).scrub
      body = parse(text) || text
      short = meta.status == 429 && body.is_a?(Hash) && SHORT_LIMITS.include?(body["limit_type"])
      Failure.new(ApiError.of(meta, body), short || WORTH_RETRYING.include?(meta.status), meta.retry_after)
    end

    def parse(text)
      JSON.parse(text)
    rescue JSON::ParserError
      nil
    end

    def failed(call, started, error)
      outcome = Failure.new(error, !call[:begun], nil)
      log(call, started, outcome)
      outcome
    end

    # Method, path, attempt, status or error, milliseconds. Never keys or bodies.
    def log(call, started, outcome)
      return unless @logger

      ms = ((Process.clock_gettime(Process::CLOCK_MONOTONIC) - started) * 1000).round
      error = outcome.is_a?(Failure) ? outcome.error.message : nil
      @logger.call({ method: call[:method], path: call[:path], attempt: call[:attempt], error: error, ms: ms })
    end
  end
end
