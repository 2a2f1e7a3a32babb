// java Sign.java METHOD PATH [BODY]    one signed request with Java's own library (11 or later)
// CUSTODY_URL, CUSTODY_API_KEY, CUSTODY_KEY (PEM file of the private key, PKCS #8)
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.util.Base64;
import java.util.UUID;

public class Sign {
    static String base64url(byte[] data) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(data);
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String sha256(String text) throws Exception {
        StringBuilder hex = new StringBuilder();
        for (byte each : MessageDigest.getInstance("SHA-256").digest(utf8(text))) hex.append(String.format("%02x", each));
        return hex.toString();
    }

    static PrivateKey readKey(String file) throws Exception {
        String pem = Files.readString(Path.of(file)).replaceAll("-----[A-Z ]+-----|\\s", "");
        return KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
    }

    static String token(PrivateKey key, String apiKey, String path, String body) throws Exception {
        long now = System.currentTimeMillis() / 1000;
        String claims = String.format(
            "{\"uri\":\"%s\",\"nonce\":\"%s\",\"iat\":%d,\"exp\":%d,\"sub\":\"%s\",\"bodyHash\":\"%s\"}",
            path, UUID.randomUUID(), now, now + 25, apiKey, sha256(body));
        String input = base64url(utf8("{\"alg\":\"RS256\",\"typ\":\"JWT\"}")) + "." + base64url(utf8(claims));
        Signature signer = Signature.getInstance("SHA256withRSA");
        signer.initSign(key);
        signer.update(utf8(input));
        return input + "." + base64url(signer.sign());
    }

    public static void main(String[] words) throws Exception {
        String path = words[1];
        String body = words.length > 2 ? words[2] : "";
        String apiKey = System.getenv("CUSTODY_API_KEY");
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(System.getenv("CUSTODY_URL") + path))
            .timeout(Duration.ofSeconds(30))
            .header("Authorization", "Bearer " + token(readKey(System.getenv("CUSTODY_KEY")), apiKey, path, body))
            .header("x-api-key", apiKey)
            .method(words[0], body.isEmpty() ? BodyPublishers.noBody() : BodyPublishers.ofString(body));
        if (!body.isEmpty()) request.header("Content-Type", "application/json");
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        var answer = client.send(request.build(), BodyHandlers.ofString());
        System.out.println(answer.body());
        System.exit(answer.statusCode() / 100 == 2 ? 0 : 1);
    }
}
