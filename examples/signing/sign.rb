# ruby sign.rb METHOD PATH [BODY]    one signed request with Ruby's own library
# CUSTODY_URL, CUSTODY_API_KEY, CUSTODY_KEY (PEM file of the private key)
require 'base64'
require 'json'
require 'net/http'
require 'openssl'
require 'securerandom'

def base64url(data)
  Base64.urlsafe_encode64(data, padding: false)
end

def token(key, api_key, path, body)
  now = Time.now.to_i
  claims = {
    uri: path, nonce: SecureRandom.uuid, iat: now, exp: now + 25, sub: api_key,
    bodyHash: OpenSSL::Digest::SHA256.hexdigest(body)
  }
  input = [{ alg: 'RS256', typ: 'JWT' }, claims].map { |part| base64url(JSON.generate(part)) }.join('.')
  "#{input}.#{base64url(key.sign(OpenSSL::Digest.new('SHA256'), input))}"
end

method, path, body = ARGV
body ||= ''
api_key = ENV.fetch('CUSTODY_API_KEY')
key = OpenSSL::PKey.read(File.read(ENV.fetch('CUSTODY_KEY')))
uri = URI(ENV.fetch('CUSTODY_URL') + path)
headers = { 'Authorization' => "Bearer #{token(key, api_key, path, body)}", 'x-api-key' => api_key }
headers['Content-Type'] = 'application/json' unless body.empty?
answer = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https', read_timeout: 30) do |http|
  http.send_request(method, uri.request_uri, body.empty? ? nil : body, headers)
end
puts answer.body
exit answer.is_a?(Net::HTTPSuccess)
