// Which requests the server of `lockstep watch` answers.
#include "tools/watch/http_request.h"

#include <gtest/gtest.h>

namespace lockstep::tools {
namespace {

TEST(HttpRequests, AreReadWhateverTheCaseOfTheirHeaders) {
  const auto request =
      parse_request("GET /token/data.json?x=1 HTTP/1.1\r\nhOST:  localhost:80 \r\nIf-None-Match: \"3\"\r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/token/data.json");
  EXPECT_EQ(request->host, "localhost:80");
  EXPECT_EQ(request->etag, "\"3\"");
}

TEST(HttpRequests, OtherTextIsNone) {
  for (const char* text : {"", "\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET  HTTP/1.1\r\n\r\n",
                           "GET x HTTP/1.1\r\n\r\n", "GET / SPDY/3\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
                           "GET / HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n"})
    EXPECT_FALSE(parse_request(text)) << text;
}

TEST(HttpRequests, OnlyLoopbackIsAName) {
  for (const char* name : {"127.0.0.1", "127.0.0.1:8000", "localhost", "LocalHost:1", "[::1]", "[::1]:8000"})
    EXPECT_TRUE(is_loopback_name(name)) << name;
  for (const char* name : {"", "example.org", "example.org:8000", "127.0.0.1.example.org", "localhost.example.org",
                           "127.0.0.2", "localhost:", "localhost:80x", "127.0.0.1:80:80", "::1"})
    EXPECT_FALSE(is_loopback_name(name)) << name;
}

TEST(HttpRequests, SecretsAreComparedWhole) {
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  for (const char* other : {"", "ab", "abcd", "abd", "bbc"}) EXPECT_FALSE(equal_secrets("abc", other)) << other;
}

}  // namespace
}  // namespace lockstep::tools
