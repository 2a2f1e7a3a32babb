// A signed request, with Go's own library alone.
//
//	CUSTODY_URL=http://127.0.0.1:8080 CUSTODY_API_KEY=… CUSTODY_KEY=my-key.pem go run custody.go GET '/dac/v1/wallets?asset=ETH'
//	… go run custody.go POST /dac/v1/create-wallet '{"asset":"ETH"}'
package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const timeout = 30 * time.Second

// The text beside it is the answer to the earlier request.
var errIdempotencyMismatch = errors.New("sequence_id: was used before with another payload; nothing was created for this request")

func privateKey(file string) (*rsa.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("CUSTODY_KEY: is no PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("CUSTODY_KEY: is no RSA key")
	}
	return key, nil
}

func token(key *rsa.PrivateKey, apiKey, method, path, body string) (string, error) {
	nonce := make([]byte, 16)
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	// The hash of exactly the bytes that are sent.
	hash := sha256.Sum256([]byte(body))
	now := time.Now().Unix()
	claims, err := json.Marshal(map[string]any{
		"uri": path, "method": method, "nonce": hex.EncodeToString(nonce), "iat": now, "exp": now + 25, "sub": apiKey, "bodyHash": hex.EncodeToString(hash[:]),
	})
	if err != nil {
		return "", err
	}
	base64url := base64.RawURLEncoding
	unsigned := base64url.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + base64url.EncodeToString(claims)
	digest := sha256.Sum256([]byte(unsigned))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", err
	}
	return unsigned + "." + base64url.EncodeToString(signature), nil
}

// Answers status and text. Read amounts with a json.Decoder and UseNumber.
func request(method, path, body string) (int, string, error) {
	apiKey := os.Getenv("CUSTODY_API_KEY")
	key, err := privateKey(os.Getenv("CUSTODY_KEY"))
	if err != nil {
		return 0, "", err
	}
	signed, err := token(key, apiKey, method, path, body)
	if err != nil {
		return 0, "", err
	}
	call, err := http.NewRequest(method, os.Getenv("CUSTODY_URL")+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	call.Header.Set("Authorization", "Bearer "+signed)
	call.Header.Set("x-api-key", apiKey)
	if body != "" {
		call.Header.Set("Content-Type", "application/json")
	}
	answer, err := (&http.Client{Timeout: timeout}).Do(call)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && strings.Contains(strings.Join(answer.Header.Values("Warning"), ","), "299 custody ") {
		err = errIdempotencyMismatch
	}
	return answer.StatusCode, string(text), err
}

func main() {
	body := ""
	if len(os.Args) > 3 {
		body = os.Args[3]
	}
	status, text, err := request(os.Args[1], os.Args[2], body)
	if errors.Is(err, errIdempotencyMismatch) {
		fmt.Println(text)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(text)
	if status >= 300 {
		os.Exit(1)
	}
}
