<?php
// A signed request, with PHP's own functions (openssl) alone.
//   CUSTODY_URL=http://127.0.0.1:8080 CUSTODY_API_KEY=… CUSTODY_KEY=my-key.pem php custody.php GET '/dac/v1/wallets?asset=ETH'
//   … php custody.php POST /dac/v1/create-wallet '{"asset":"ETH"}'
declare(strict_types=1);

const TIMEOUT_S = 30;

/** The sequence_id was used before with another payload: nothing was created for this request. */
final class IdempotencyMismatch extends RuntimeException
{
    /** @param string $answer text of the earlier request's answer */
    public function __construct(public readonly string $answer)
    {
        parent::__construct('sequence_id: was used before with another payload; nothing was created for this request');
    }
}

function base64url(string $bytes): string
{
    return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
}

/** @return array{int, string} status and text of the answer; PHP's floats hold no 18 decimals: read amounts as text */
function signed_request(string $method, string $path, string $body = ''): array
{
    $now = time();
    $claims = [
        'uri' => $path, 'method' => $method, 'nonce' => bin2hex(random_bytes(16)), 'iat' => $now, 'exp' => $now + 25, 'sub' => getenv('CUSTODY_API_KEY'),
        // The hash of exactly the bytes that are sent.
        'bodyHash' => hash('sha256', $body),
    ];
    $unsigned = base64url(json_encode(['alg' => 'RS256', 'typ' => 'JWT'])) . '.' . base64url(json_encode($claims, JSON_UNESCAPED_SLASHES));
    $key = openssl_pkey_get_private('file://' . realpath(getenv('CUSTODY_KEY')));
    if ($key === false || !openssl_sign($unsigned, $signature, $key, OPENSSL_ALGO_SHA256)) {
        throw new RuntimeException('CUSTODY_KEY: is no RSA private key in PEM');
    }
    $headers = ["Authorization: Bearer $unsigned." . base64url($signature), 'x-api-key: ' . getenv('CUSTODY_API_KEY')];
    if ($body !== '') {
        $headers[] = 'Content-Type: application/json';
    }
    $context = stream_context_create(['http' => [
        'method' => $method, 'header' => $headers, 'content' => $body, 'timeout' => TIMEOUT_S,
        'ignore_errors' => true, 'follow_location' => 0, 'protocol_version' => 1.1,
    ]]);
    $text = file_get_contents(getenv('CUSTODY_URL') . $path, false, $context);
    if ($text === false) {
        throw new RuntimeException('no answer: it may have been done; ask again with the same sequence_id');
    }
    if (preg_grep('/^warning:.*299 custody /i', $http_response_header) !== []) {
        throw new IdempotencyMismatch($text);
    }
    return [(int) explode(' ', $http_response_header[0])[1], $text];
}

try {
    [$status, $text] = signed_request(...array_slice($argv, 1));
} catch (IdempotencyMismatch $mismatch) {
    echo $mismatch->answer, "\n";
    fwrite(STDERR, $mismatch->getMessage() . "\n");
    exit(2);
}
echo $text, "\n";
exit($status < 300 ? 0 : 1);
