# frozen_string_literal: true

module Postern
  # One page of a list. Enumerating it gives its items and then those of the pages behind it, each asked for when it is
  # needed. Pages are asked for by cursor (`after`), which does not move when rows are added meanwhile.
  class Page
    include Enumerable

    LIMIT = 50

    # @return [Array<Record>]
    attr_reader :items
    # @return [Integer] how many rows there are in all; at least so many where `total_is_at_least` is true
    attr_reader :total, :total_is_at_least

    # @param name [String] of the list in the answer
    # @param cursor [Boolean] whether it takes `after`
    def initialize(name, cursor, query, &ask)
      answer = ask.call(query)
      @name = name
      @cursor = cursor
      @ask = ask
      @items = answer[name]
      # Such an answer did not come from Postern: it says nothing of how many rows there are.
      raise ConnectionError, "the answer has no '#{name}'" unless @items.is_a?(Array)

      @total = answer["total"] || @items.length
      @total_is_at_least = answer["total_is_at_least"] == true
      @behind = behind(answer, query)
    end

    def has_more
      !@behind.nil?
    end
    alias has_more? has_more

    # @return [Page, nil] the page behind it; nil on the last
    def next
      @behind && Page.new(@name, @cursor, @behind, &@ask)
    end

    def each(&block)
      return enum_for(:each) unless block

      page = self
      while page
        page.items.each(&block)
        page = page.next
      end
      self
    end

    private

    # Nil where this was the last page: it is shorter than its limit, or ends at the total.
    def behind(answer, query)
      return nil if items.empty? || items.length < (answer["limit"] || LIMIT)

      stop = (answer["offset"] || 0) + items.length
      # With a cursor the answer's total counts rows before it, too.
      return nil if !query.key?(:after) && !total_is_at_least && stop >= total

      kept = query.reject { |name, _value| %i[offset after].include?(name) }
      last = items.last.is_a?(Hash) ? items.last["id"] : nil
      @cursor && last.is_a?(String) ? kept.merge(after: last) : kept.merge(offset: stop)
    end
  end
end
