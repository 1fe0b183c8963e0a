# frozen_string_literal: true

module Postern
  VERSION = "0.1.0"
end
