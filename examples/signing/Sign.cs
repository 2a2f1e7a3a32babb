// dotnet run Sign.cs -- METHOD PATH [BODY]    one signed request with .NET's own library (10 or later)
// CUSTODY_URL, CUSTODY_API_KEY, CUSTODY_KEY (PEM file of the private key)
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;

static string Base64Url(byte[] data) => Convert.ToBase64String(data).TrimEnd('=').Replace('+', '-').Replace('/', '_');

static string Token(RSA key, string apiKey, string path, string body)
{
    var now = DateTimeOffset.UtcNow.ToUnixTimeSeconds();
    var claims = JsonSerializer.SerializeToUtf8Bytes(new Dictionary<string, object>
    {
        ["uri"] = path, ["nonce"] = Guid.NewGuid().ToString(), ["iat"] = now, ["exp"] = now + 25, ["sub"] = apiKey,
        ["bodyHash"] = Convert.ToHexString(SHA256.HashData(Encoding.UTF8.GetBytes(body))).ToLowerInvariant(),
    });
    var input = Base64Url(Encoding.UTF8.GetBytes("{\"alg\":\"RS256\",\"typ\":\"JWT\"}")) + "." + Base64Url(claims);
    var signature = key.SignData(Encoding.UTF8.GetBytes(input), HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);
    return input + "." + Base64Url(signature);
}

static string Setting(string name) => Environment.GetEnvironmentVariable(name) ?? throw new InvalidOperationException($"{name} is not set");

var (method, path, body) = (args[0], args[1], args.Length > 2 ? args[2] : "");
using var key = RSA.Create();
key.ImportFromPem(File.ReadAllText(Setting("CUSTODY_KEY")));
using var request = new HttpRequestMessage(new HttpMethod(method), Setting("CUSTODY_URL") + path);
request.Headers.TryAddWithoutValidation("Authorization", "Bearer " + Token(key, Setting("CUSTODY_API_KEY"), path, body));
request.Headers.TryAddWithoutValidation("x-api-key", Setting("CUSTODY_API_KEY"));
if (body != "")
{
    request.Content = new ByteArrayContent(Encoding.UTF8.GetBytes(body));
    request.Content.Headers.TryAddWithoutValidation("Content-Type", "application/json");
}
using var client = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false }) { Timeout = TimeSpan.FromSeconds(30) };
using var answer = await client.SendAsync(request);
Console.WriteLine(await answer.Content.ReadAsStringAsync());
return answer.IsSuccessStatusCode ? 0 : 1;
