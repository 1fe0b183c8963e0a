# frozen_string_literal: true

# Client library for Postern: `Postern::Client`, `Postern::Webhooks`, and what is raised.
module Postern
end

require_relative "postern/version"
require_relative "postern/errors"
require_relative "postern/record"
require_relative "postern/page"
require_relative "postern/transport"
require_relative "postern/webhooks"
require_relative "postern/generated/resources"
require_relative "postern/client"
