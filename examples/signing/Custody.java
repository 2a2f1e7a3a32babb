// A signed request, with Java's own library alone (17 or later).
//   CUSTODY_URL=http://127.0.0.1:8080 CUSTODY_API_KEY=… CUSTODY_KEY=my-key.pem java Custody.java GET '/dac/v1/wallets?asset=ETH'
//   … java Custody.java POST /dac/v1/create-wallet '{"asset":"ETH"}'
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.HexFormat;
import java.util.UUID;

public final class Custody {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  /** The sequence_id was used before with another payload: nothing was created for this request. */
  static final class IdempotencyMismatch extends Exception {
    /** Text of the earlier request's answer. */
    final String answer;

    IdempotencyMismatch(String answer) {
      super("sequence_id: was used before with another payload; nothing was created for this request");
      this.answer = answer;
    }
  }

  private static String base64url(byte[] bytes) {
    return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
  }

  private static PrivateKey privateKey(String file) throws Exception {
    String pem = Files.readString(Path.of(file)).replaceAll("-----[A-Z ]+-----|\\s", "");
    return KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
  }

  private static String token(PrivateKey key, String apiKey, String method, String path, byte[] body) throws Exception {
    long now = Instant.now().getEpochSecond();
    // The hash of exactly the bytes that are sent.
    String hash = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
    // A path of the API holds nothing that JSON would have to escape.
    String claims = String.format(
        "{\"uri\":\"%s\",\"method\":\"%s\",\"nonce\":\"%s\",\"iat\":%d,\"exp\":%d,\"sub\":\"%s\",\"bodyHash\":\"%s\"}",
        path, method, UUID.randomUUID(), now, now + 25, apiKey, hash);
    String unsigned = base64url("{\"alg\":\"RS256\",\"typ\":\"JWT\"}".getBytes(StandardCharsets.UTF_8)) + "."
        + base64url(claims.getBytes(StandardCharsets.UTF_8));
    Signature signature = Signature.getInstance("SHA256withRSA");
    signature.initSign(key);
    signature.update(unsigned.getBytes(StandardCharsets.UTF_8));
    return unsigned + "." + base64url(signature.sign());
  }

  /** Read amounts as BigDecimal: a double holds no 18 decimals. */
  static HttpResponse<String> request(String method, String path, String body) throws Exception {
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    String apiKey = System.getenv("CUSTODY_API_KEY");
    HttpRequest.Builder call = HttpRequest.newBuilder(URI.create(System.getenv("CUSTODY_URL") + path)).timeout(TIMEOUT)
        .header("Authorization", "Bearer " + token(privateKey(System.getenv("CUSTODY_KEY")), apiKey, method, path, bytes))
        .header("x-api-key", apiKey);
    if (bytes.length == 0) call.method(method, HttpRequest.BodyPublishers.noBody());
    else call.header("Content-Type", "application/json").method(method, HttpRequest.BodyPublishers.ofByteArray(bytes));
    HttpResponse<String> answer = HttpClient.newBuilder().connectTimeout(TIMEOUT).build()
        .send(call.build(), HttpResponse.BodyHandlers.ofString());
    if (String.join(",", answer.headers().allValues("warning")).contains("299 custody ")) throw new IdempotencyMismatch(answer.body());
    return answer;
  }

  public static void main(String[] arguments) throws Exception {
    try {
      HttpResponse<String> answer = request(arguments[0], arguments[1], arguments.length > 2 ? arguments[2] : "");
      System.out.println(answer.body());
      System.exit(answer.statusCode() < 300 ? 0 : 1);
    } catch (IdempotencyMismatch mismatch) {
      System.out.println(mismatch.answer);
      System.err.println(mismatch.getMessage());
      System.exit(2);
    }
  }
}
