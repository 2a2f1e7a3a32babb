# A signed request, with Ruby's own library alone.
#   CUSTODY_URL=http://127.0.0.1:8080 CUSTODY_API_KEY=… CUSTODY_KEY=my-key.pem ruby custody.rb GET '/dac/v1/wallets?asset=ETH'
#   … ruby custody.rb POST /dac/v1/create-wallet '{"asset":"ETH"}'
require 'base64'
require 'digest'
require 'json'
require 'net/http'
require 'openssl'
require 'securerandom'

TIMEOUT_S = 30

# The sequence_id was used before with another payload: nothing was created for this request. `answer` is the earlier request's.
class IdempotencyMismatch < StandardError
  attr_reader :answer

  def initialize(answer)
    super('sequence_id: was used before with another payload; nothing was created for this request')
    @answer = answer
  end
end

def base64url(bytes) = Base64.urlsafe_encode64(bytes, padding: false)

# Answers a Net::HTTPResponse, or raises IdempotencyMismatch. Read amounts with JSON.parse(text, decimal_class: BigDecimal).
def signed_request(method, path, body = '')
  now = Time.now.to_i
  claims = {
    uri: path, method: method, nonce: SecureRandom.uuid, iat: now, exp: now + 25, sub: ENV.fetch('CUSTODY_API_KEY'),
    # The hash of exactly the bytes that are sent.
    bodyHash: Digest::SHA256.hexdigest(body)
  }
  unsigned = "#{base64url(JSON.generate(alg: 'RS256', typ: 'JWT'))}.#{base64url(JSON.generate(claims))}"
  key = OpenSSL::PKey::RSA.new(File.read(ENV.fetch('CUSTODY_KEY')))
  token = "#{unsigned}.#{base64url(key.sign('SHA256', unsigned))}"
  url = URI(ENV.fetch('CUSTODY_URL') + path)
  call = Net::HTTPGenericRequest.new(method, !body.empty?, true, url)
  call['Authorization'] = "Bearer #{token}"
  call['x-api-key'] = ENV.fetch('CUSTODY_API_KEY')
  unless body.empty?
    call['Content-Type'] = 'application/json'
    call.body = body
  end
  answer = Net::HTTP.start(url.host, url.port, use_ssl: url.scheme == 'https', open_timeout: TIMEOUT_S, read_timeout: TIMEOUT_S) do |http|
    http.request(call)
  end
  raise IdempotencyMismatch, answer.body if answer['warning'].to_s.include?('299 custody ')

  answer
end

if __FILE__ == $PROGRAM_NAME
  begin
    answer = signed_request(*ARGV)
  rescue IdempotencyMismatch => e
    puts e.answer
    warn e.message
    exit 2
  end
  puts answer.body
  exit answer.is_a?(Net::HTTPSuccess)
end
