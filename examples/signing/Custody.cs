// A signed request, with .NET's own library alone (8 or later). In a project made by `dotnet new console`, this is Program.cs:
//   CUSTODY_URL=http://127.0.0.1:8080 CUSTODY_API_KEY=… CUSTODY_KEY=my-key.pem dotnet run -- GET '/dac/v1/wallets?asset=ETH'
//   … dotnet run -- POST /dac/v1/create-wallet '{"asset":"ETH"}'
using System.Net.Http.Headers;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;

static string Base64Url(byte[] bytes) => Convert.ToBase64String(bytes).TrimEnd('=').Replace('+', '-').Replace('/', '_');

static string Token(RSA key, string apiKey, string method, string path, byte[] body)
{
    var now = DateTimeOffset.UtcNow.ToUnixTimeSeconds();
    var claims = JsonSerializer.SerializeToUtf8Bytes(new Dictionary<string, object>
    {
        ["uri"] = path, ["method"] = method, ["nonce"] = Guid.NewGuid().ToString(), ["iat"] = now, ["exp"] = now + 25, ["sub"] = apiKey,
        // The hash of exactly the bytes that are sent.
        ["bodyHash"] = Convert.ToHexString(SHA256.HashData(body)).ToLowerInvariant(),
    });
    var unsigned = $"{Base64Url("""{"alg":"RS256","typ":"JWT"}"""u8.ToArray())}.{Base64Url(claims)}";
    var signature = key.SignData(Encoding.ASCII.GetBytes(unsigned), HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);
    return $"{unsigned}.{Base64Url(signature)}";
}

// Read amounts with JsonElement.GetDecimal, or as text where they have more than 28 digits.
static async Task<HttpResponseMessage> Request(string method, string path, string body)
{
    var apiKey = Environment.GetEnvironmentVariable("CUSTODY_API_KEY")!;
    var bytes = Encoding.UTF8.GetBytes(body);
    using var key = RSA.Create();
    key.ImportFromPem(await File.ReadAllTextAsync(Environment.GetEnvironmentVariable("CUSTODY_KEY")!));
    using var client = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false }) { Timeout = TimeSpan.FromSeconds(30) };
    using var call = new HttpRequestMessage(new HttpMethod(method), Environment.GetEnvironmentVariable("CUSTODY_URL") + path);
    call.Headers.Authorization = new AuthenticationHeaderValue("Bearer", Token(key, apiKey, method, path, bytes));
    call.Headers.Add("x-api-key", apiKey);
    if (bytes.Length > 0)
    {
        call.Content = new ByteArrayContent(bytes);
        call.Content.Headers.ContentType = new MediaTypeHeaderValue("application/json");
    }
    return await client.SendAsync(call);
}

using var answer = await Request(args[0], args[1], args.Length > 2 ? args[2] : "");
Console.WriteLine(await answer.Content.ReadAsStringAsync());
// The answer is that of an earlier request: stop, or a payment that was not made is taken for made.
if (answer.Headers.TryGetValues("warning", out var warnings) && string.Join(",", warnings).Contains("299 custody "))
{
    Console.Error.WriteLine("sequence_id: was used before with another payload; nothing was created for this request");
    return 2;
}
return answer.IsSuccessStatusCode ? 0 : 1;
