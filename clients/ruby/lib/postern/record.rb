# frozen_string_literal: true

require "time"

module Postern
  # Requests of the present second: how many there may be, and how many are left. `reset` is in seconds.
  RateLimit = Struct.new(:limit, :remaining, :reset)

  # What is known of an answer besides its body.
  class Response
    attr_reader :status, :headers, :request_id, :rate_limit

    # @param headers [Hash{String => String}] names in lower case
    def initialize(status, headers)
      @status = status
      @headers = headers
      @request_id = headers["x-request-id"]
      limit, remaining, reset = %w[limit remaining reset].map { |name| number("ratelimit-#{name}") }
      @rate_limit = limit && remaining ? RateLimit.new(limit, remaining, reset) : nil
    end

    # Seconds of a Retry-After field (RFC 9110 §10.2.3): the server writes them, a proxy before it may write a date.
    def retry_after
      number("retry-after") || [0, (Time.httpdate(headers["retry-after"].to_s.strip) - Time.now).ceil].max
    rescue ArgumentError
      nil
    end

    private

    def number(name)
      value = headers[name].to_s.strip
      value.match?(/\A\d+\z/) ? value.to_i : nil
    end
  end

  # A record of the API: a hash with string keys, whose fields can also be read as methods (`email.subject`). Fields that
  # this version does not know are kept.
  class Record < Hash
    # @return [Response, nil] the answer that it came with
    attr_accessor :response

    def self.of(value, response = nil)
      case value
      when Hash
        record = new
        value.each { |name, inner| record[name] = of(inner) }
        record.response = response
        record
      when Array then value.map { |inner| of(inner) }
      else value
      end
    end

    # The record inside an answer. One without it did not come from Postern.
    # @api private
    def inside(name)
      raise ConnectionError, "the answer has no '#{name}'" unless self[name].is_a?(Record)

      self[name].tap { |record| record.response = response }
    end

    def method_missing(name, *arguments)
      return self[name.to_s] if arguments.empty? && key?(name.to_s)

      super
    end

    def respond_to_missing?(name, include_private = false)
      key?(name.to_s) || super
    end
  end
end
